#include "search/uniform/layout_plans.h"

#include <algorithm>

#include "model/layers.h"
#include "search/space/schedules.h"
#include "search/uniform/division/chunk_descent.h"
#include "search/uniform/division/chunk_layers.h"

namespace plait {

LayoutPlans::LayoutPlans(const UniformLayout& layout, Schedule base, const Space& space,
                         LayoutStages& stages)
    : layout_(layout),
      base_(base),
      space_(space),
      problem_(space.problem()),
      units_(problem_.model.unit_count()),
      stages_(stages) {}

CutLimits LayoutPlans::limits() const {
  const Target& target = space_.target();
  const bool even = target.cuts == CutRule::even_layers || space_.pins().even_layers;
  const bool equal = target.cuts == CutRule::equal_layers;
  if (layout_.stages == 1 || (!even && !equal)) return {};
  const int layers = whole_layer_count(problem_.model);
  const int least = layers / layout_.stages;
  const int most = (layers + layout_.stages - 1) / layout_.stages;
  if (equal && least != most) return {units_ + 1, units_ + 2};  // there is none
  return {least, std::max(most, 1)};
}

Plan LayoutPlans::of(const std::vector<int>& begins) const {
  Plan plan = recut(stages_.plan(), base_, begins, units_);
  if (const auto pinned = space_.pins().recompute_layers)
    recompute_first(problem_.model, *pinned, plan);
  return plan;
}

bool LayoutPlans::may_differ() const {
  const CutRule rule = space_.target().cuts;
  return (rule == CutRule::between_layers || rule == CutRule::between_ops) &&
         !space_.pins().even_layers;
}

std::vector<Plan> LayoutPlans::under_own_schedule(const CutResult& cuts,
                                                  const std::vector<int>& layers) {
  std::vector<Plan> plans;
  const auto add = [&](const std::vector<int>& begins) {
    for (Plan& plan : under_schedule(of(begins))) plans.push_back(std::move(plan));
  };
  if (may_differ()) {
    for (const Cut& own : cuts.cuts) add(own.begins);
    std::vector<int> begins{0};  // the embedding is with the first stage
    for (std::size_t s = 0; s + 1 < layers.size(); ++s)
      begins.push_back(std::max(1, begins.back()) + layers[s]);
    if (!layers.empty()) add(begins);
  }
  if (const auto even = even_chunks()) plans.push_back(*even);
  return plans;
}

std::optional<Plan> LayoutPlans::even_chunks() {
  if (layout_.schedule != Schedule::interleaved) return std::nullopt;
  const RunCosts& runs = *stages_.runs(layout_.stages - 1);
  const double layer = runs.alone({units_ / 2, units_ / 2 + 1}).total().value;
  const double last = runs.alone({units_ - 1, units_}).total().value;
  const bool equal = space_.target().cuts == CutRule::equal_layers;
  const std::vector<int> begins =
      even_begins(problem_.model, layout_.stages, layout_.chunks, layer > 0 ? last / layer : 0);
  if (begins.empty()) return std::nullopt;
  Plan plan = recut(stages_.plan(), Schedule::interleaved, begins, units_);
  if (equal && !is_equal(plan)) return std::nullopt;
  return plan;
}

std::vector<int> LayoutPlans::begins_of(const DividedLayers& divided) const {
  std::vector<int> layers;
  for (int c = 0; c < layout_.chunks; ++c)
    for (const LayerDivision* stage : divided.stages) layers.push_back(stage->layers[c]);
  return begins_of_layers(problem_.model, layers);
}

bool LayoutPlans::is_equal(const Plan& plan) const {
  const std::vector<int> layers = layers_by_chunk(problem_.model, plan);
  return std::ranges::all_of(layers, [&](int n) { return n == layers.front(); });
}

std::vector<Plan> LayoutPlans::under_schedule(const Plan& plain) const {
  if (layout_.chunks > 1) return in_layers(in_chunks(plain, layout_.schedule, layout_.chunks));
  Plan plan = plain;
  plan.schedule = layout_.schedule;
  return {plan};
}

std::vector<Plan> LayoutPlans::in_layers(std::vector<Plan> plans) const {
  std::erase_if(plans, [&](const Plan& plan) {
    return why_not(space_.target(), problem_, plan).has_value();
  });
  return plans;
}

Estimate LayoutPlans::outline(const CostEngine& engine, const Plan& plan) {
  if (!memo_) memo_.emplace(problem_);
  return engine.outline(plan, &*memo_);
}

}  // namespace plait
