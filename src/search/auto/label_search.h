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

// Builds pipelines from the end, stage by stage, for all device mixes at once. Suffixes are
// compared if they begin at the same unit, have the same number of stages and use the same devices.
// A suffix that is not better in any respect than another is dropped (dominance), and so is a
// suffix whose bound reaches the incumbent. The search expands suffixes best first, by their
// bounds, which proves how good its answer is, or as a beam, by their promise, which is quick.
LabelResult label_search(const Space& space, StageTable& table, const LabelOptions& options,
                         const std::function<bool()>& stop);

}  // namespace plait
