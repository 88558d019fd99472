#pragma once

#include <vector>

#include "plan/plan.h"
#include "search/space/search.h"

namespace plait {

// Plans are searched as plain pipelines: under GPipe when that is pinned, else under 1F1B, whose
// stages every other schedule can run as well.
Schedule searched_schedule(const Pins& pins);

// The plans that a plain pipeline stands for: itself, or, when a schedule is pinned that splits the
// backward pass or cuts stages into chunks, that pipeline under this schedule (with the pinned
// number of chunks, or with 2, 3, 4 ..); with more recompute too, since more micro-batches may be
// in flight. Empty when the schedule cannot run it.
std::vector<Plan> plans_for(const Plan& pipeline, const Pins& pins);

// The same stages, whose spans must differ in recompute only, with `chunks` chunks each, in the
// order that the schedule wants; each stage keeps its number of units, and each chunk has its part
// of what is recomputed. Empty spans are not made: nothing is returned when a stage has too few
// units.
std::vector<Plan> in_chunks(const Plan& pipeline, Schedule schedule, int chunks);

}  // namespace plait
