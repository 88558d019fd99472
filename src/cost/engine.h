#pragma once

#include <cmath>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

#include "cost/estimate.h"
#include "cost/layer/unit_cost.h"
#include "cost/pipeline/simulator.h"
#include "cost/stage_cost.h"
#include "cost/stage_memo.h"
#include "plan/plan.h"
#include "plan/problem.h"

namespace plait {

// Where the times and activations of equal units in a row come from, on one device type.
struct UnitSource {
  int stage = 0;
  int span = 0;  // of the stage
  UnitRange units;
  std::string unit;  // LayerKind::name
  std::string device_type;
  Origin origin;
  friend bool operator==(const UnitSource&, const UnitSource&) = default;
};

// Predicts step time and memory of plans for one problem. Const calls are thread-safe and pure; the
// tables that they need are made once and kept. Plans must pass check_plan().
class CostEngine {
 public:
  explicit CostEngine(const Problem& problem);

  // Closed form where the schedule has one (simulator.h), else simulated.
  Estimate estimate(const Plan& plan) const;
  // Event by event; `trace` receives the timeline when given. Costs of stages come from `memo`
  // where it is given; the numbers are the same. Plans that are not faster than the
  // limit may be given up on the way: their step is infinite.
  Estimate simulate(const Plan& plan, Trace* trace = nullptr, StageMemo* memo = nullptr,
                    Seconds limit = Seconds(HUGE_VAL)) const;

  // What is known without a simulation: the stages, whether they fit, and a `step` that no
  // simulation of the plan undercuts, but for rounding: what its busiest stage has to do and to
  // wait for, and what follows.
  Estimate outline(const Plan& plan, StageMemo* memo = nullptr) const;
  // The step of the outline, infinite when the plan does not fit.
  Seconds floor_of(const Plan& plan) const;

  // For every unit of the plan: measured, interpolated or analytic.
  std::vector<UnitSource> sources(const Plan& plan) const;

  const UnitTable& table(const ReplicaShape& shape) const;
  const Problem& problem() const { return problem_; }

 private:
  // The pipeline that the plan makes, and the estimate of its stages without any total.
  Pipeline pipeline_of(const Plan& plan, Estimate& estimate, StageMemo* memo = nullptr) const;
  // Of tied parameters on two stages, whose gradients are summed before either optimizer step: adds
  // it to both stages, gives the sum over all ties.
  Seconds add_tied_sync(const Plan& plan, Estimate& estimate, StageMemo* memo) const;
  // Adds what follows the pipeline; stage_end as of the simulation.
  void finish(const Plan& plan, const std::vector<Seconds>& stage_end, Estimate& estimate,
              StageMemo* memo) const;

  const Problem& problem_;
  mutable std::shared_mutex mutex_;
  mutable std::map<ReplicaShape, std::unique_ptr<UnitTable>> tables_;
};

// Model flops of one step (forward and backward, no recompute) over what the plan's devices could
// do at peak in the step. Causal attention counts the half of the scores that it needs; adapters
// need no gradients of the weights, frozen layers no backward pass.
double model_flops_utilisation(const Problem& problem, const Plan& plan, Seconds step);
// The same with the full square of causal attention, as many papers count it.
double full_attention_utilisation(const Problem& problem, const Plan& plan, Seconds step);

double tokens_per_second(const Problem& problem, Seconds step);

}  // namespace plait
