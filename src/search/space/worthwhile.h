#pragma once

#include "plan/problem.h"
#include "search/space/search.h"

namespace plait {

// How much work may be spent; all that it takes where a gap is asked for.
Effort effort_of(const SearchOptions& options);

// Whether plans with this number of micro-batches are asked for (SearchOptions).
bool is_promising(const SearchContext& context, int micro_batches);

// Whether cutting the optimizer's state over the replicas makes no stage slower or fuller: what is
// gathered is no more than a second pass of the gradients, and the step has less to update. Then
// settings without ZeRO need no search of their own.
bool gains_by_cut_optimizer(const Problem& problem);

}  // namespace plait
