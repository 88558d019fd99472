#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "graph/search/costs.h"

namespace plait::graph {

struct SearchOptions {
  int threads = 1;
  bool whole = false;  // as CostOptions::whole
  bool keep = false;   // as CostOptions::keep
  const MeasuredBlocks* measured = nullptr;
  const MeasuredProducts* products = nullptr;
  std::optional<Bytes> memory;  // of a device; nothing = what the device has
  // Called between steps; true = give the best so far.
  std::function<bool()> stop = [] { return false; };
};

inline CostOptions cost_options(const SearchOptions& options) {
  return {options.threads, options.whole, options.keep, options.measured, options.products};
}

// A way to divide the program over a mesh.
struct ShardingPlan {
  Mesh mesh;
  std::vector<Strategy> strategies;  // by block
  Seconds compute;
  Seconds communication;
  Seconds bound;  // no choice of strategies for this mesh is faster
  Bytes peak;     // of memory on a device
  std::vector<Movement> movements;
  std::vector<Placement> placements;  // by value

  Seconds time() const { return compute + communication; }
  // What each device sends in a step, by kind of collective.
  std::vector<Bytes> traffic() const;
};

// Why there is no plan: how much the smallest that was met needs.
struct NoPlan {
  Bytes needed;
  Bytes limit;
};

struct SearchResult {
  std::optional<ShardingPlan> best;
  std::optional<NoPlan> why_not;
};

SearchResult search(const Analysis& analysis, const Mesh& mesh, const SearchOptions& options = {});

// The plan that takes the given strategies.
ShardingPlan plan_with(const Analysis& analysis, const Mesh& mesh, const GraphCosts& costs,
                       const std::vector<int>& choice);

// Positions of the plan's strategies among those of each block.
std::vector<int> choice_of(const GraphCosts& costs, const ShardingPlan& plan);

// For each block: what the step takes longer with the best other strategy of that block, the others
// staying.
struct RunnerUp {
  Strategy strategy;
  Seconds loss;
};
std::vector<std::optional<RunnerUp>> runners_up(const GraphCosts& costs, const ShardingPlan& plan);

}  // namespace plait::graph
