#pragma once

#include <vector>

#include "cost/aceso_formula.h"
#include "search/space/search.h"

namespace plait {

// What is to be planned by Aceso's formula.
struct AcesoTask {
  int global_batch = 1;
  int devices = 1;       // all of them are used
  Bytes memory;          // that a device may use
  int first_stages = 1;  // pipelines have at least and at most so many stages
  int last_stages = 16;
  std::optional<int> micro_batch{};  // of all replicas together; nothing = any that was measured
};

struct AcesoRanked {
  std::vector<AcesoStage> stages;
  int micro_batch = 1;
  AcesoCost cost;
};

struct AcesoOptimum {
  std::vector<AcesoRanked> plans;  // best first, at most one for each size of micro-batch
  std::int64_t evaluations = 0;    // stages costed
  bool cut_short = false;
};

// The best pipelines by Aceso's formula: stages of a power of two of devices inside a node, each op
// range cut at any op, tensor and data degrees and micro-batches that were measured, recompute op
// by op; for ResNet also the algorithm of each op and one change of degrees inside a stage.
//
// For every size of micro-batch, pipelines are built from the end, as the memory of a stage depends
// on the stages behind it. Of two with the same ops and devices to come, the one with the longer
// slowest stage and the longer sum is dropped; so is one that cannot beat the best known pipeline
// even if the other ops were spread perfectly over the other devices. Cuts are placed between
// layers first; with what is then known, between all ops, or, where there are many, near the cuts
// that were found, finer and finer.
AcesoOptimum search_aceso_optimum(const AcesoFormula& formula, const AcesoTask& task,
                                  const SearchContext& context);

}  // namespace plait
