#pragma once

#include <optional>
#include <string>
#include <vector>

#include "search/space/pins.h"

namespace plait {

// How a launch script of Megatron-LM runs its model, beside what the model is.
struct MegatronLaunch {
  Pins pins;  // of the layout; what Megatron does where the script does not say otherwise
  std::optional<int> layers_per_chunk;
  std::optional<int> global_batch;
  std::optional<Precision> precision;
  std::vector<std::string> taken;     // "tp 8", "micro-batch 1", .. for people
  std::vector<std::string> warnings;  // flags of the layout that are not understood
};

// Nothing when the text says nothing about the layout (a file of model flags only).
std::optional<MegatronLaunch> read_megatron_launch(const std::string& name,
                                                   const std::string& text);

}  // namespace plait
