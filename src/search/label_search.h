#pragma once

#include <functional>
#include <stop_token>
#include <vector>

#include "search/partial_plan.h"
#include "search/space.h"
#include "search/stage_menu.h"

namespace plait {

// A pipeline and the closed-form length that the search found for it.
struct Pipelined {
  std::vector<PlacedStage> stages;
  Seconds length;
};

struct LabelOptions {
  int width = 1000;   // open labels kept per number of stages
  int keep = 8;       // pipelines returned
  Seconds incumbent;  // pipelines that cannot be shorter are not followed
};

struct LabelResult {
  std::vector<Pipelined> pipelines;  // shortest first
  // No pipeline of these settings is shorter (in closed form, without sends): the least bound of
  // what was returned and of what was dropped.
  Seconds lower_bound;
};

// Builds pipelines from the end, stage by stage, for all suffixes at once. Suffixes that begin at
// the same unit with the same devices used are compared: one that is no better in any respect is
// dropped (dominance). Suffixes whose bound exceeds the incumbent are dropped. When more than
// `width` are left, the least promising are dropped too, and the bound remembers them.
LabelResult label_search(const Space& space, StageMenu& menu, const LabelOptions& options,
                         const std::function<bool()>& stop);

}  // namespace plait
