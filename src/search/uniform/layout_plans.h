#pragma once

#include <optional>
#include <vector>

#include "cost/stage_memo.h"
#include "search/paths/layer_game.h"
#include "search/uniform/division/cut_search.h"
#include "search/uniform/layout_stages.h"

namespace plait {

// The plans that a layout's cuts are, with the hosts in the order that its stages were placed in.
class LayoutPlans {
 public:
  LayoutPlans(const UniformLayout& layout, Schedule base, const Space& space, LayoutStages& stages);

  // How many layers a stage may have.
  CutLimits limits() const;
  // Whether stages may have different numbers of layers.
  bool may_differ() const;

  // A plain pipeline with these first units.
  Plan of(const std::vector<int>& begins) const;
  // The pipeline under the layout's own schedule, in chunks where it has any: as the best plain
  // cuts have it, with these numbers of layers, and evenly.
  std::vector<Plan> under_own_schedule(const CutResult& cuts, const std::vector<int>& layers);
  // First units; none where a chunk would have no unit.
  std::vector<int> begins_of(const DividedLayers& divided) const;
  // Chunks of as many layers as each other, as far as can be.
  std::optional<Plan> even_chunks();

  // What a plan of the layout takes: stages that come back in many of them are costed once.
  Estimate outline(const CostEngine& engine, const Plan& plan);

 private:
  bool is_equal(const Plan& plan) const;
  std::vector<Plan> under_schedule(const Plan& plain) const;
  std::vector<Plan> in_layers(std::vector<Plan> plans) const;

  const UniformLayout& layout_;
  Schedule base_;  // of plain pipelines
  const Space& space_;
  const Problem& problem_;
  int units_;
  LayoutStages& stages_;
  std::optional<StageMemo> memo_;  // since the first plan that was asked for
};

}  // namespace plait
