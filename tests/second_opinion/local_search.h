#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "cost/engine.h"
#include "plan/plan.h"

// An independent opinion on how fast a problem can be trained: simulated annealing over plans, from
// many starts, with moves of its own. It has only Problem, Plan, check_plan() and CostEngine in
// common with the planners, so that it can be used to judge them and the bounds that they print.
namespace plait::second_opinion {

struct Options {
  std::uint64_t seed = 1;
  std::int64_t evaluations = 2'000;                   // simulations, most
  std::function<bool()> stop = [] { return false; };  // ends it sooner
};

struct Opinion {
  Plan plan;
  Seconds step;
  std::int64_t evaluations = 0;
  const char* start = "";  // where the best plan came from
};

// The fastest plan that it finds, `given` plans among its starts; nothing when none fits. The same
// seed gives the same plan.
std::optional<Opinion> second_opinion(const CostEngine& engine, const std::vector<Plan>& given,
                                      const Options& options);

}  // namespace plait::second_opinion
