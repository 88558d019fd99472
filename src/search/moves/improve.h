#pragma once

#include <functional>

#include "search/moves/ground.h"
#include "search/space/search.h"
#include "search/space/shortlist.h"

namespace plait {

// How much work it is worth, and which random numbers are drawn.
struct Walks {
  double work = 1;  // relative to the usual
  int series = 0;   // walks of another series go other ways
};

// Improves the best plans found so far by moves (moves.h), and looks at regular layouts of its own:
// over all that is free, schedules, the order of devices and shares included. Offers what it finds.
// The same for any number of threads.
void improve(const SearchContext& context, const Space& space, const CostEngine& engine,
             Shortlist& found, const Walks& walks, const std::function<bool()>& stop);

}  // namespace plait
