#pragma once

#include "plan/problem.h"
#include "search/space/search.h"

namespace plait {

// How much work may be spent; all that it takes where a gap is asked for.
Effort effort_of(const SearchOptions& options);

// Whether plans with this number of micro-batches are asked for (SearchOptions).
bool is_promising(const SearchContext& context, int micro_batches);

// Whether cutting the optimizer's state over the replicas hardly ever makes a stage slower, and
// none fuller: what is gathered is no more than a second pass of the gradients, and the step has
// less to update. It may all the same: gradients hide behind the backward pass and gathered weights
// behind the shorter forward pass, so that on a slow network the sum of gradients is hidden and the
// gathering is not. Settings without ZeRO are left out where nothing is proven by the settings.
bool gains_by_cut_optimizer(const Problem& problem);

}  // namespace plait
