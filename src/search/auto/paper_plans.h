#pragma once

#include <functional>
#include <vector>

#include "search/space/search.h"

namespace plait {

// What the planners of other people's papers find that is faster than `cutoff`, with these numbers
// of micro-batches (ascending), asked side by side for a limited number of plans each.
std::vector<Plan> plans_of_papers(const SearchContext& context,
                                  const std::vector<int>& micro_batches, Seconds cutoff,
                                  const std::function<bool()>& stop);

}  // namespace plait
