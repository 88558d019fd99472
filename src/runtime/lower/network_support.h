#pragma once

#include <string>
#include <vector>

#include "model/model.h"

namespace plait::runtime {

// "" or why the network that lower() makes of a model is not the one that the model describes: "the
// network has a clamped gate, which plait does not model". Such a network is measured as it is
// lowered, and never trained.
std::string untrained_feature(const Model& model);

// What is left out of training whatever the model says, one sentence each, for the caller to show:
// dropout, the statistics of batch norm, keys of the source that nobody understands.
std::vector<std::string> execution_notes(const Model& model);

}  // namespace plait::runtime
