#pragma once

#include <optional>

#include "search/space/space.h"
#include "search/space/units/units_recomputed.h"

namespace plait {

// A run of units on the devices of a frame, and how many micro-batches it keeps.
struct RunInFlight {
  UnitRange units;
  double live = 1;     // micro-batches in flight
  double waiting = 0;  // of these, past their loss (GPipe)
};

bool fits(const Space& space, const SpanFrame& frame, const RunInFlight& run,
          const UnitsRecomputed& recompute);

// Of all ways to recompute whole layers of a run, the first ones in full and the next ones
// selectively, the one that takes least time and fits; nothing when none does. Every layer that is
// recomputed adds time and spares memory, so that the fewest are best: with f layers in full, the
// least s that fits is found by bisection, and f is raised from the least that fits with any s as
// long as f layers alone take less than the best found.
std::optional<UnitsRecomputed> least_recompute(const Space& space, const SpanFrame& frame,
                                               const RunInFlight& run);

}  // namespace plait
