#include "search/space/worthwhile.h"

#include <algorithm>

#include "cost/framework/framework.h"

namespace plait {

bool gains_by_cut_optimizer(const Problem& problem) {
  const StateBytes state = state_bytes(problem.job);
  return state.gathered <= state.sent_gradient && state.sharded_gradient <= 0 &&
         !problem.job.adapters && problem.profile.collectives.empty();
}

Effort effort_of(const SearchOptions& options) {
  return options.effort.value_or(options.target_gap ? Effort::prove : Effort::normal);
}

bool is_promising(const SearchContext& context, int micro_batches) {
  const std::vector<int>& promising = context.options.promising_micro_batches;
  return promising.empty() || std::ranges::binary_search(promising, micro_batches);
}

}  // namespace plait
