#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/model/megatron_layout.h"
#include "search/space/pins.h"

namespace plait {

// Flags that make communication run beside compute: that of gradients, and of tensor parallelism.
inline constexpr const char* kOverlapsGradients = "--overlap-grad-reduce";
inline constexpr const char* kOverlapsTensors = "--tp-comm-overlap";

// How a launch script of Megatron-LM runs its model, beside what the model is.
struct MegatronLaunch {
  std::string framework;  // whose engine runs it: "" = Megatron-LM's own, else DeepSpeed's
  Pins pins;  // of the layout; what Megatron does where the script does not say otherwise
  std::optional<int> layers_per_chunk;
  std::vector<LayoutStage> layout;  // in pipeline order; empty = Megatron-LM's own
  // Layers that count for the embedding or the loss where stages are cut evenly: 0 or 1.
  int embedding_layers = 0;
  int loss_layers = 0;
  int optimizer_instances = 1;  // groups of replicas that cut states, each by itself
  // Communication that runs beside compute.
  bool overlaps_gradients = false;
  bool overlaps_tensors = false;
  int gradient_bytes = 0;  // of an accumulated gradient; 0 = as plait has it without being told
  int logit_bytes = 0;     // at the peak of the loss; 0 = likewise
  std::optional<int> processes;  // that the script starts, where it says so in numbers
  std::optional<AttentionKernel> attention;
  std::optional<Optimizer> optimizer;
  std::optional<int> global_batch;
  std::optional<Precision> precision;
  std::vector<std::string> taken;     // "tp 8", "micro-batch 1", .. for people
  std::vector<std::string> warnings;  // what is not priced
  std::vector<std::string> unpinned;  // what a search cannot be held to
};

// Flags that the text gives twice with different values, as a complaint about the first of them:
// which of the two runs is a matter of the script's branches.
void refuse_two_values(const std::string& name, const std::string& text);

// Nothing when the text says nothing about the layout (a file of model flags only).
std::optional<MegatronLaunch> read_megatron_launch(const std::string& name,
                                                   const std::string& text);

}  // namespace plait
