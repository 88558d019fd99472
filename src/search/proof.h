#pragma once

#include "cost/engine.h"
#include "search/space/search.h"

namespace plait {

// The one rule for what is said of the fastest plan possible. A planner bounds the plans of its
// space under the schedule that it searches (space.h, schedules.h). Where that schedule is pinned,
// or the framework has no other, and no plan is known below, the bound is kept as it is. Where
// other schedules were free to choose, or moves have left the space and gone below it, it is
// replaced by one that holds for every plan: what the devices can compute at best
// (ClusterLowerBound).
void keep_what_is_proven(const SearchContext& context, const CostEngine& engine,
                         SearchResult& result);

}  // namespace plait
