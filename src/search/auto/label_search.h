#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "search/bound/stage_table.h"
#include "search/space/space.h"

namespace plait {

// A pipeline, first stage first, and its closed-form step time without sends.
struct Pipelined {
  std::vector<PlacedStage> stages;
  Seconds length;
};

struct LabelOptions {
  int keep = 6;                        // pipelines returned
  Seconds incumbent;                   // pipelines that are not shorter are not followed
  int width = 0;                       // > 0: a beam of this width; 0: best first
  std::int64_t evaluations = 200'000;  // most stages that are costed, best first
};

struct LabelResult {
  bool proven = false;               // nothing was left open
  std::vector<Pipelined> pipelines;  // shortest first
  // No pipeline of the table is shorter than this: exact when the search ran to its end, else the
  // least bound of what was left open.
  Seconds lower_bound;
};

// Builds pipelines from the end, stage by stage, for all device mixes at once. A suffix that begins
// at the same unit, with the same number of stages and the same devices used as another and is no
// better in any respect is dropped (dominance); so is one whose bound reaches the incumbent. Best
// first, by bound, it proves how good its answer is; as a beam, by promise, it is quick.
LabelResult label_search(const Space& space, StageTable& table, const LabelOptions& options,
                         const std::function<bool()>& stop);

}  // namespace plait
