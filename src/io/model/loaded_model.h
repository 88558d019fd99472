#pragma once

#include <string>
#include <vector>

#include "model/model.h"

namespace plait {

// A model as read from a file or the zoo, with what the reader had to assume: one sentence each,
// for the caller to show.
struct LoadedModel {
  Model model;
  std::vector<std::string> warnings;
};

}  // namespace plait
