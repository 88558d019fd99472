#include "search/uniform/near_plans.h"

#include <algorithm>
#include <utility>

namespace plait {
namespace {

bool recomputes_alike(const Plan& plan) {
  const Recompute first = plan.stages.front().spans.front().recompute;
  return std::ranges::all_of(plan.stages, [&](const Stage& stage) {
    return std::ranges::all_of(stage.spans,
                               [&](const Span& span) { return span.recompute == first; });
  });
}

std::vector<DeviceId> first_devices(const Plan& plan) {
  std::vector<DeviceId> first;
  for (const Stage& stage : plan.stages) first.push_back(stage.devices.front());
  return first;
}

}  // namespace

Shape shape_of(const Plan& plan) {
  return {plan.stages.front().spans.front().tensor, plan.stage_count(), plan.context, plan.expert};
}

void NearPlans::keep(const NearPlan& near) {
  const Plan& plan = near.plan;
  if (plan.stage_count() == 1 || !recomputes_alike(plan)) return;
  const Kind kind{shape_of(plan),
                  plan.schedule,
                  chunk_count(plan.stages.front()),
                  plan.micro_batches,
                  plan.stages.front().spans.front().recompute,
                  plan.zero,
                  first_devices(plan)};
  const auto [at, is_new] = kept_.try_emplace(kind, near);
  if (!is_new &&
      std::pair(near.promise, near.plan) < std::pair(at->second.promise, at->second.plan))
    at->second = near;
}

std::vector<NearPlan> NearPlans::all() const {
  std::vector<NearPlan> plans;
  for (const auto& [kind, near] : kept_) plans.push_back(near);
  return plans;
}

}  // namespace plait
