#pragma once

#include <functional>

#include "search/moves/ground.h"
#include "search/space/search.h"
#include "search/space/shortlist.h"

namespace plait {

// Improves the best plans found so far by moves (moves.h), and looks at regular layouts of its own:
// over all that is free, schedules, the order of devices and shares included. Offers what it finds.
// The same for any number of threads.
void improve(const SearchContext& context, const Space& space, const CostEngine& engine,
             Shortlist& found, const std::function<bool()>& stop);

}  // namespace plait
