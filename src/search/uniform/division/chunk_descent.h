#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "cost/engine.h"
#include "plan/plan.h"
#include "search/space/shortlist.h"

namespace plait {

// Layers of every chunk, in execution order. What stands before a layer goes with it, what begins
// the model with the first chunk, and the head with the last.
std::vector<int> layers_in_order(const Model& model, const Plan& plan);
// The first units of such chunks; empty where a chunk would have none, or the model fewer layers.
std::vector<int> begins_of_layers(const Model& model, const std::vector<int>& layers);

// Plans that differ in where layers are, under one schedule.
struct ChunkDescent {
  const CostEngine& engine;
  // Nothing where the program does not run it.
  std::function<std::optional<Plan>(const std::vector<int>& begins)> plan_of;
  int most_simulations = 0;
};

// Moves one layer after the other from one chunk to another as long as the step gets shorter, those
// first that shorten all long paths that are known (learned_path.h); where a plan does not fit,
// first until it does. Offers where that ends if it may be the best plan.
void descend(const ChunkDescent& descent, std::vector<int> layers, Shortlist& found);

}  // namespace plait
