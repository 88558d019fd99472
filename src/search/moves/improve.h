#pragma once

#include <functional>

#include "cost/stage_memo.h"
#include "search/moves/ground.h"
#include "search/space/search.h"
#include "search/space/shortlist.h"

namespace plait {

// How much work to spend, and which random numbers to draw.
struct Walks {
  double work = 1;  // relative to the usual
  int series = 0;   // another series draws other random numbers
};

// Improves the best plans found so far by moves (moves.h), and tries regular layouts of its own.
// Moves change everything that is not pinned, including schedules, the order of devices and shares.
// Offers what it finds. The result is the same for any number of threads, and whatever memos hold.
void improve(const SearchContext& context, const Space& space, const CostEngine& engine,
             MemoShelf& memos, Shortlist& found, const Walks& walks,
             const std::function<bool()>& stop);

}  // namespace plait
