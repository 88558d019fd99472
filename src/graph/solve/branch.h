#pragma once

#include <functional>
#include <vector>

#include "graph/solve/dual.h"
#include "graph/solve/network.h"

namespace plait::solve {

// Work is counted in cells of cost tables, so that a limit means the same on every machine; `stop`
// is asked now and then and ends the search at once.
struct Budget {
  std::size_t limit = 0;
  std::size_t used = 0;
  std::function<bool()> stop;
  bool stopped() const { return stop && stop(); }
  bool spent() const { return used >= limit || stopped(); }
};

struct BranchOptions {
  int root_sweeps = 3000;
  int node_sweeps = 60;
  double root_scale = 1;  // first part of Polyak's step at the root; less where prices are good
  // With more variables than this, a fifth of them is fixed at once and the rest of the tree left
  // open: one dive, not a proof.
  int most_variables = 600;
};

struct BranchResult {
  Amount cost = kForbidden;    // of `labels`; at or above `below` when nothing was found
  std::vector<int> labels;     // by variable of the root
  Amount bound = 0;            // no answer costs less
  std::vector<double> prices;  // by row of the root
};

// Looks for answers that cost less than `below`, depth first, most certain choices first, with
// reductions and the dual bound at every node.
BranchResult branch(const Network& root, Amount below, const std::vector<double>& prices,
                    const BranchOptions& options, Budget& budget);

}  // namespace plait::solve
