#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/model/megatron_launch.h"
#include "model/model.h"

namespace plait {

// A model as read from a file or the zoo, with what the reader had to assume: one sentence each,
// for the caller to show.
struct LoadedModel {
  Model model;
  std::vector<std::string> warnings;
  std::optional<MegatronLaunch> launch{};  // where the file is a launch script
};

}  // namespace plait
