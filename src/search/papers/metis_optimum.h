#pragma once

#include <vector>

#include "cost/metis_formula.h"
#include "search/space/search.h"

namespace plait {

struct MetisRanked {
  Plan plan;
  MetisTerms cost;
};

struct MetisOptimum {
  std::vector<MetisRanked> plans;  // best first
  std::int64_t evaluations = 0;    // stages that were put before others
  bool cut_short = false;
};

// The best plans by Metis' formula that its rows can say: all devices, types one after the other in
// any order, stages of any number of devices, any (dp, tp) that was measured, any cut of the
// layers, any number of micro-batches; tensor groups inside a node, as they were measured, and
// every replica with a sample. The first plan is the optimum; the others are good, not necessarily
// the next best.
//
// For every order of the types and number of micro-batches, pipelines are built from the end. Of
// two with the same layers and devices to come, one is dropped when no beginning can make it the
// better:
//   sum' + (B - 1) (max' - max)+ + (update' - update)+ + .. <= sum.
// Pins are honoured; time_limit and stop end the search early.
MetisOptimum search_metis_optimum(const MetisFormula& formula, const SearchContext& context);

}  // namespace plait
