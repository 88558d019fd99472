#include "app/saved/neighbours.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/check.h"
#include "plan/names.h"

namespace plait {
namespace {

bool has_recompute(const Plan& plan, Recompute recompute) {
  return std::ranges::all_of(plan.stages, [&](const Stage& stage) {
    return std::ranges::all_of(stage.spans,
                               [&](const Span& span) { return span.recompute == recompute; });
  });
}

Plan with_recompute(Plan plan, Recompute recompute) {
  for (Stage& stage : plan.stages) {
    for (Span& span : stage.spans) span.recompute = recompute;
    join_alike(stage);
  }
  return plan;
}

// Tensor degree times `up`, over `down`, everywhere, at the expense of the data degree. Empty plan
// when it does not come out even.
Plan with_tensor(Plan plan, int up, int down) {
  for (Stage& stage : plan.stages) {
    stage.shares.clear();
    for (Span& span : stage.spans) {
      if (span.tensor * up % down != 0 || span.data * down % up != 0) return {};
      span.tensor = span.tensor * up / down;
      span.data = span.data * down / up;
    }
  }
  return plan;
}

bool has_tensor_parallelism(const Plan& plan) {
  return std::ranges::any_of(plan.stages, [](const Stage& stage) {
    return std::ranges::any_of(stage.spans, [](const Span& span) { return span.tensor > 1; });
  });
}

Plan with_micro_batches(Plan plan, int micro_batches) {
  plan.micro_batches = micro_batches;
  for (Stage& stage : plan.stages) stage.shares.clear();
  return plan;
}

}  // namespace

std::vector<Neighbour> neighbours_of(const Problem& problem, const Plan& plan) {
  std::vector<Neighbour> all;
  const auto add = [&](std::string change, Plan neighbour) {
    if (neighbour.stages.empty() || neighbour == plan) return;
    if (!check_plan(problem, neighbour).empty()) return;
    all.push_back({std::move(change), std::move(neighbour)});
  };
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full})
    if (!has_recompute(plan, recompute))
      add(recompute == Recompute::none ? "no recompute"
                                       : fmt::format("{} recompute", name_of(recompute)),
          with_recompute(plan, recompute));
  add("twice the tensor degree, half the data degree", with_tensor(plan, 2, 1));
  add("half the tensor degree, twice the data degree", with_tensor(plan, 1, 2));
  if (plan.micro_batches % 2 == 0)
    add("micro-batches twice as large", with_micro_batches(plan, plan.micro_batches / 2));
  if (plan.micro_batches <= problem.job.global_batch / 2)
    add("micro-batches half as large", with_micro_batches(plan, plan.micro_batches * 2));
  for (const ZeroStage zero : {ZeroStage::off, ZeroStage::optimizer, ZeroStage::parameters}) {
    Plan other = plan;
    other.zero = zero;
    add(zero == ZeroStage::off ? "no ZeRO" : fmt::format("ZeRO stage {}", name_of(zero)), other);
  }
  for (const Schedule schedule :
       {Schedule::gpipe, Schedule::one_f_one_b, Schedule::zb_h1, Schedule::zb_2p}) {
    if (plan.stage_count() == 1) break;
    Plan other = plan;
    other.schedule = schedule;
    add(fmt::format("schedule {}", name_of(schedule)), other);
  }
  if (has_tensor_parallelism(plan)) {
    Plan other = plan;
    other.sequence_parallel = !plan.sequence_parallel;
    add(plan.sequence_parallel ? "no sequence parallel" : "sequence parallel", other);
  }
  return all;
}

}  // namespace plait
