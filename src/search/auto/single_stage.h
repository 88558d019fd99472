#pragma once

#include <functional>

#include "cost/engine.h"
#include "search/space/pipeline_suffix.h"
#include "search/space/shortlist.h"
#include "search/space/space.h"

namespace plait {

// What is searched: plans of one stage with these settings that are faster than the limit.
struct SingleStage {
  PlanSettings settings;
  Schedule schedule = Schedule::one_f_one_b;
  Seconds limit;
};

// Offers them all, the most promising first, each of them lowering the limit to the best plan that
// is kept; returns what no plan of one stage with these settings is faster than, zero when stopped.
// Options are ranked without the gathering of cut weights, which only adds time: ZeRO-3 needs costs
// of its own for every number of replicas, and few options are worth them.
Seconds single_stage_plans(const Space& space, const CostEngine& engine, const SingleStage& wanted,
                           Shortlist& found, const std::function<bool()>& stop);

}  // namespace plait
