#pragma once

#include <vector>

#include "search/paths/layer_game.h"

namespace plait {

using DividedStages = std::vector<const LayerDivision*>;  // one of each stage

// Gives a stage a layer more or less, divided in the first way; false where it cannot have that.
bool shift(const LayerPipeline& pipeline, DividedStages& stages, int stage, int by);

struct LayerMove {
  int from = 0;  // stages
  int to = 0;
  double length = 0;  // of the longest known path, then
};

// The moves of one layer that leave no known path as long as `step`, those with the shortest paths
// first. No other move makes the step shorter.
std::vector<LayerMove> moves_that_may_help(const LayerPipeline& pipeline,
                                           const std::vector<StepPath>& paths,
                                           const DividedStages& stages, double step);

// Of each stage and chunk, as paths have them.
PipelineTimes times_of(const DividedStages& stages);

}  // namespace plait
