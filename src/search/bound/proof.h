#pragma once

#include "cost/engine.h"
#include "search/space/search.h"

namespace plait {

// Whether all plans that are free to choose are under the schedule that a planner's own bounds hold
// for: it is pinned, or the framework has only this one, or plans have one stage.
bool proves_one_schedule(const SearchContext& context);

// A lower bound on the step of every plan, under any schedule and with any placement of devices.
// The search for it stops at `best`. Zero when nothing is proven. More effort makes it tighter.
Seconds floor_of_all(const SearchContext& context, const CostEngine& engine, Seconds best,
                     Effort effort);

// Planners that search one schedule do not recompute a unit that fits without. But a layer that
// waits for the host has a shorter forward pass when it is recomputed: the host slows all of its
// passes down alike, and there are more of them. Nothing else of a plan gets shorter (what
// recompute adds to a backward pass is more than what it hides of the sum of gradients), so that a
// step is shorter by this part of it at most. Zero where that is not free to choose.
double most_saved_forward(const SearchContext& context, const CostEngine& engine);

// The one rule for what is said of the fastest plan possible. A planner bounds the plans of its
// space under the schedule that it searches (space.h, schedules.h). Where that schedule is pinned,
// or the framework has no other, and all that it looked at is of the space, the bound is kept as it
// is. Where other schedules were free to choose, or plans beyond the space were looked for
// (devices in any place, any shares), it is replaced by one that holds for every plan.
void keep_what_is_proven(const SearchContext& context, const CostEngine& engine,
                         SearchResult& result);

}  // namespace plait
