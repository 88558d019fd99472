#include "cost/uniform.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "cost/framework.h"
#include "cost/schedule.h"
#include "cost/stage_cost.h"

namespace plait {
namespace {

int stage_size(const UniformPlan& plan) { return plan.tensor * plan.data * plan.context; }

std::vector<DeviceId> devices_from(int first, int count) {
  std::vector<DeviceId> ids;
  for (int i = 0; i < count; ++i) ids.push_back(static_cast<DeviceId>(first + i));
  return ids;
}

// What the shape of a stage does not depend on is left out.
UniformPlan stage_part(UniformPlan plan) {
  plan.pipeline = 1;
  plan.recompute = Recompute::none;
  plan.schedule = Schedule::one_f_one_b;
  return plan;
}

UnitRange units_of(const UniformPlan& plan, int stage, int layers) {
  const int each = layers / plan.pipeline;
  return {stage == 0 ? 0 : 1 + stage * each,
          stage + 1 == plan.pipeline ? layers + 2 : 1 + (stage + 1) * each};
}

}  // namespace

std::size_t UniformCost::Hash::operator()(const UniformPlan& plan) const {
  std::size_t hash = 0;
  for (const int part : {plan.tensor, plan.data, plan.micro_batches, plan.context, plan.expert,
                         static_cast<int>(plan.zero), plan.sequence_parallel ? 1 : 0})
    hash = (hash ^ static_cast<std::size_t>(part)) * 0x9E3779B97F4A7C15;
  return hash >> 20;
}

Plan plan_of(const Problem& problem, const UniformPlan& uniform) {
  Plan plan;
  plan.schedule = uniform.schedule;
  plan.micro_batches = uniform.micro_batches;
  plan.context = uniform.context;
  plan.expert = uniform.expert;
  plan.zero = uniform.zero;
  plan.sequence_parallel = uniform.sequence_parallel;
  const int layers = problem.model.unit_count() - 2;
  for (int s = 0; s < uniform.pipeline; ++s) {
    Stage stage;
    stage.spans.push_back({.units = units_of(uniform, s, layers),
                           .tensor = uniform.tensor,
                           .data = uniform.data,
                           .recompute = uniform.recompute});
    stage.devices = devices_from(s * stage_size(uniform), stage_size(uniform));
    plan.stages.push_back(std::move(stage));
  }
  return plan;
}

UniformCost::UniformCost(const CostEngine& engine)
    : engine_(engine),
      problem_(engine.problem()),
      per_node_(problem_.cluster.device_count() / static_cast<int>(problem_.cluster.nodes.size())),
      layers_(problem_.model.unit_count() - 2) {
  regular_ = is_regular();
  for (const Tie& tie : problem_.model.ties) tied_parameters_ += tie.parameters;
}

bool UniformCost::is_regular() const {
  const Cluster& cluster = problem_.cluster;
  const Model& model = problem_.model;
  if (layers_ < 1 || !problem_.profile.extras.empty() || traits_of(problem_.job).send_blocks)
    return false;
  const auto alike = [&](int unit) { return model.units[unit] == model.units[1]; };
  for (int u = 1; u <= layers_; ++u)
    if (!alike(u)) return false;
  if (!std::ranges::all_of(model.kinds, &LayerKind::starts_layer)) return false;
  if (model.unit(0).output != model.unit(1).output) return false;
  for (const Tie& tie : model.ties)
    if (tie.first != 0 || tie.second != layers_ + 1) return false;
  const int count = cluster.device_count();
  if (count % static_cast<int>(cluster.nodes.size()) != 0) return false;
  for (int d = 0; d < count; ++d) {
    const Device& device = cluster.device(static_cast<DeviceId>(d));
    if (device.type != cluster.device(DeviceId{0}).type || device.node != d / per_node_)
      return false;
  }
  return std::ranges::all_of(cluster.nodes, [&](const Node& node) {
    const Node& first = cluster.nodes.front();
    return node.intra == first.intra && node.uplink == first.uplink && node.zone == first.zone;
  });
}

bool UniformCost::fills_nodes(const UniformPlan& plan) const {
  const int size = stage_size(plan);
  return per_node_ % size == 0 || size % per_node_ == 0;
}

Seconds UniformCost::tied_time(const UniformPlan& plan, int other) const {
  const std::vector<DeviceId> pair{DeviceId{0}, static_cast<DeviceId>(other)};
  const Group group = group_of(problem_.cluster, pair, std::min(stage_size(plan), per_node_));
  Seconds time;
  for (const Tie& tie : problem_.model.ties)
    time +=
        all_reduce(group, Bytes(state_bytes(problem_.job).gradient * tie.parameters / plan.tensor));
  return time;
}

const UniformCost::Shape& UniformCost::shape_of(const UniformPlan& plan) {
  const UniformPlan key = stage_part(plan);
  const auto found = shapes_.find(key);
  if (found != shapes_.end()) return found->second;
  const TableSource tables = [this](const ReplicaShape& shape) -> const UnitTable& {
    return engine_.table(shape);
  };
  const int size = stage_size(plan);
  const int count = problem_.cluster.device_count();
  const Plan whole = plan_of(problem_, key);
  Shape shape{.frame = SpanFrame(problem_, settings_of(whole), whole.stages[0].devices, plan.tensor,
                                 plan.data, {}, tables),
              .send_inside = {},
              .send_across = {},
              .tied_inside = {},
              .tied_across = {}};
  const auto send_to = [&](int first) {
    Stage to = whole.stages[0];
    to.devices = devices_from(first, size);
    return hand_over_time(problem_, whole, whole.stages[0], to, 1);
  };
  if (2 * size <= per_node_) {
    shape.send_inside = send_to(size);
    shape.tied_inside = tied_time(plan, size);
  }
  const int next = std::max(size, per_node_);  // the first device of another node
  if (next + size <= count) {
    shape.send_across = send_to(next);
    shape.tied_across = tied_time(plan, next);
  }
  return shapes_.emplace(key, std::move(shape)).first->second;
}

UniformCost::StageTimes UniformCost::times_of(const Shape& shape, const UnitRange& units,
                                              Recompute recompute) {
  const UnitCost cost = shape.frame.time(units, recompute);
  return {cost.forward_total(), cost.backward_total(),
          shape.frame.gradient_sync(units) + shape.frame.optimizer(units)};
}

int UniformCost::inside_boundaries(const UniformPlan& plan, int from) const {
  const int stages_per_node = per_node_ / stage_size(plan);
  if (stages_per_node < 2) return 0;
  // Boundary j is between the stages j - 1 and j; it leaves the node when stages_per_node divides
  // j.
  const int first = std::max(1, from);
  const int all = plan.pipeline - first;
  const int across = (plan.pipeline - 1) / stages_per_node - (first - 1) / stages_per_node;
  return all - across;
}

Seconds UniformCost::pipeline_time(const UniformPlan& plan, const Shape& shape,
                                   const StageTimes& first, const StageTimes& middle,
                                   const StageTimes& last) const {
  const int p = plan.pipeline;
  const double m = plan.micro_batches;
  const auto trip_from = [&](int s) {  // through the stages from s on, and over the cut before s
    const int inside = inside_boundaries(plan, s);
    const int across = p - std::max(1, s) - inside;
    return (p - 1.0 - s) * (middle.forward + middle.backward) + (last.forward + last.backward) +
           2.0 * inside * shape.send_inside + 2.0 * across * shape.send_across;
  };
  const Seconds own_first = first.forward + first.backward;
  if (p == 1) return m * own_first;
  const Seconds after_first = trip_from(1);
  const Seconds round_trip = own_first + after_first;
  if (plan.schedule == Schedule::gpipe) {
    Seconds forward = std::max(first.forward, last.forward);
    Seconds backward = std::max(first.backward, last.backward);
    if (p > 2) {
      forward = std::max(forward, middle.forward);
      backward = std::max(backward, middle.backward);
    }
    return round_trip + (m - 1) * (forward + backward);
  }
  const auto path = [&](int s, const StageTimes& t) {
    const int k = std::min(plan.micro_batches, p - s);
    Seconds refill = (k - 1.0) * std::max(t.forward, t.backward);
    if (plan.micro_batches > k && s + 1 < p) refill = std::max(refill, trip_from(s + 1));
    return (m - k) * (t.forward + t.backward) + refill;
  };
  Seconds longest = std::max(path(0, first), path(p - 1, last));
  if (p > 2) {
    const int first_below = std::max(1, p - plan.micro_batches + 1);  // k < m from here on
    longest = std::max({longest, path(p - 2, middle), path(1, middle)});
    if (first_below <= p - 2) longest = std::max(longest, path(first_below, middle));
  }
  return round_trip + longest;
}

void UniformCost::add_memory(const UniformPlan& plan, const Shape& shape, int stage,
                             const UnitRange& units, QuickEstimate& estimate) const {
  const double live = chunks_in_flight(plan.schedule, plan.pipeline, stage, plan.micro_batches, 1);
  const double waiting = plan.schedule == Schedule::gpipe ? live - 1 : 0;
  const double tied = stage > 0 && stage + 1 == plan.pipeline ? tied_parameters_ : 0;
  const SpanFrame::Memory memory = shape.frame.memory(0, units, plan.recompute, tied);
  estimate.peak_memory = std::max(estimate.peak_memory, memory.peak(live, waiting));
  estimate.fits = estimate.fits && memory.spare(live, waiting) >= Bytes(0);
}

QuickEstimate UniformCost::evaluate(const UniformPlan& plan) {
  PLAIT_CHECK(plan.schedule == Schedule::gpipe || plan.schedule == Schedule::one_f_one_b);
  PLAIT_CHECK(layers_ % plan.pipeline == 0);
  if (!regular_ || !fills_nodes(plan)) {
    const Estimate estimate = engine_.estimate(plan_of(problem_, plan));
    return {estimate.step, estimate.peak_memory(), estimate.fits};
  }
  const Shape& shape = shape_of(plan);
  const int p = plan.pipeline;
  const UnitRange first_units = units_of(plan, 0, layers_);
  const UnitRange last_units = units_of(plan, p - 1, layers_);
  const StageTimes first = times_of(shape, first_units, plan.recompute);
  const StageTimes last = p > 1 ? times_of(shape, last_units, plan.recompute) : first;
  StageTimes middle;
  if (p > 2) middle = times_of(shape, units_of(plan, 1, layers_), plan.recompute);
  const Seconds pipeline = pipeline_time(plan, shape, first, middle, last);
  // A stage is done when the gradients have passed all stages before it.
  Seconds end = std::max(pipeline, pipeline + first.once);
  if (p > 1) {
    const int inside = inside_boundaries(plan, 0);
    const Seconds sends = inside * shape.send_inside + (p - 1.0 - inside) * shape.send_across;
    const Seconds before = first.backward + (p - 2.0) * middle.backward + sends;
    end = std::max(end, pipeline - before + last.once);
  }
  if (p > 2) {
    const bool next_inside = inside_boundaries(plan, 1) > inside_boundaries(plan, 2);
    const Seconds send = next_inside ? shape.send_inside : shape.send_across;
    end = std::max(end, pipeline - first.backward - send + middle.once);
  }
  if (p > 1) end += (p - 1) * stage_size(plan) < per_node_ ? shape.tied_inside : shape.tied_across;
  QuickEstimate estimate{.step = end, .peak_memory = {}, .fits = true};
  add_memory(plan, shape, 0, first_units, estimate);
  if (p > 1) add_memory(plan, shape, p - 1, last_units, estimate);
  if (p > 2) add_memory(plan, shape, 1, units_of(plan, 1, layers_), estimate);
  return estimate;
}

}  // namespace plait
