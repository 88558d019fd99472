#pragma once

#include "model/model.h"
#include "model/resnet_config.h"

namespace plait {

// Units: "stem", one per block ("stage1_first", "stage1", ...), "head".
//
// Tensor parallelism cuts a block by channels: conv1 by output, conv2 by input with a reduction,
// conv3 (and the down-sampling one) by output with a gathering. A gathering moves half as much as
// an all-reduce of the same tensor, so it counts as a reduction of half the elements.
Model build_wide_resnet(const WideResnetConfig& config);

}  // namespace plait
