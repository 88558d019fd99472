#pragma once

#include <functional>
#include <span>
#include <vector>

#include "cost/estimate.h"
#include "cost/resharding.h"
#include "cost/span_frame.h"
#include "plan/plan.h"
#include "plan/problem.h"

namespace plait {

// Everything about stage `index` of a plan that does not depend on the other stages' times, and the
// times of its chunks (for the simulator). The slowest replica counts for times, the one with least
// memory to spare for bytes.
struct StageResult {
  StageCost cost;
  std::vector<Seconds> chunk_forward;
  std::vector<Seconds> chunk_backward;  // weight gradient not included
  std::vector<Seconds> chunk_weight_gradient;
};
StageResult stage_cost(const Problem& problem, const Plan& plan, int index,
                       const TableSource& tables);
// The same with frames that somebody keeps, of a span of the stage; they stay where they are.
using FrameSource = std::function<const SpanFrame&(const Span&)>;
StageResult stage_cost_in(const Problem& problem, const Plan& plan, int index,
                          const FrameSource& frames);

// A micro-batch that is handed over the cut between two stages.
struct HandOver {
  Seconds time;  // until all of it is there
  Seconds busy;  // of that, what the link is not free for the next one; no latency, no waiting
  bool crosses_nodes = false;
};
// The slowest of the device pairs, each node's network shared by the devices of the stage on it.
// The cut is before unit `unit`.
HandOver hand_over(const Problem& problem, const Plan& plan, const Stage& from, const Stage& to,
                   int unit);
inline Seconds hand_over_time(const Problem& problem, const Plan& plan, const Stage& from,
                              const Stage& to, int unit) {
  return hand_over(problem, plan, from, to, unit).time;
}

// To sum the gradients of tied parameters that are on two stages, each device with one of the other
// stage, the slowest pair; `tensor` is the degree of the second.
Seconds tied_sync_time(const Problem& problem, const Tie& tie, std::span<const DeviceId> first,
                       std::span<const DeviceId> second, int tensor);

}  // namespace plait
