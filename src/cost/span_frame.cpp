#include "cost/span_frame.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "cost/framework.h"

namespace plait {
namespace {

// Compute and prefetched communication run side by side; fitted corner, docs/cost-model.md#zero.
constexpr double kOverlapCorner = 4;
Seconds overlapped(Seconds compute, Seconds comm) {
  const double longer = std::max(compute, comm).value;
  const double shorter = std::min(compute, comm).value;
  if (longer <= 0) return {};
  return Seconds(longer *
                 std::pow(1 + std::pow(shorter / longer, kOverlapCorner), 1 / kOverlapCorner));
}

// Groups of `count` devices at distance `stride`; all such groups of the span work at once, so a
// node's network is shared by those that have members on it.
class GroupMaker {
 public:
  GroupMaker(const Cluster& cluster, std::span<const DeviceId> devices)
      : cluster_(cluster), devices_(devices) {
    for (const DeviceId id : devices) ++by_node_[cluster.device(id).node];
  }

  Group make(int first, int stride, int count) const {
    if (count == 1) return {};
    std::vector<DeviceId> ids;
    std::map<int, int> members;
    for (int i = 0; i < count; ++i) {
      ids.push_back(devices_[first + i * stride]);
      ++members[cluster_.device(ids.back()).node];
    }
    double sharing = 1;
    for (const auto& [node, own] : members)
      sharing = std::max(sharing, static_cast<double>(by_node_.at(node)) / own);
    return group_of(cluster_, ids, sharing);
  }

 private:
  const Cluster& cluster_;
  std::span<const DeviceId> devices_;
  std::map<int, int> by_node_;
};

}  // namespace

PlanSettings settings_of(const Plan& plan) {
  return {plan.micro_batches, plan.context,           plan.expert,
          plan.zero,          plan.sequence_parallel, plan.offload};
}

double tied_copies(const Model& model, std::span<const UnitRange> units) {
  const auto holds = [&](int unit) {
    return std::ranges::any_of(
        units, [&](const UnitRange& range) { return range.begin <= unit && unit < range.end; });
  };
  double copies = 0;
  for (const Tie& tie : model.ties)
    if (holds(tie.second) && !holds(tie.first)) copies += tie.parameters;
  return copies;
}

SpanFrame::SpanFrame(const Problem& problem, const PlanSettings& settings,
                     std::span<const DeviceId> devices, int tensor, int data,
                     std::span<const int> shares, const TableSource& tables)
    : problem_(problem), settings_(settings), tensor_(tensor), data_(data) {
  PLAIT_CHECK(static_cast<int>(devices.size()) == tensor * data * settings.context);
  const Cluster& cluster = problem.cluster;
  const GroupMaker groups(cluster, devices);
  const double even = static_cast<double>(problem.job.global_batch) / settings.micro_batches / data;
  std::vector<ReplicaShape> shapes;
  for (int d = 0; d < data; ++d) {
    const int first = d * tensor * settings.context;
    ReplicaShape shape;
    shape.device_type = cluster.device(devices[first]).type;
    shape.sharding = {.samples = shares.empty() ? even : shares[d],
                      .tensor = tensor,
                      .context = settings.context,
                      .expert = settings.expert,
                      .sequence_parallel = settings.sequence_parallel};
    shape.tensor_group = groups.make(first, 1, tensor);
    shape.context_group = groups.make(first, tensor, settings.context);
    // Experts are spread over neighbouring data and context ranks of one tensor rank.
    const int block = d * settings.context / settings.expert * settings.expert;
    shape.expert_group = groups.make(block * tensor, tensor, settings.expert);
    shapes.push_back(shape);
  }
  std::ranges::sort(shapes);
  shapes.erase(std::unique(shapes.begin(), shapes.end()), shapes.end());
  for (const ReplicaShape& shape : shapes)
    replicas_.push_back(
        {&tables(shape), &cluster.device_types[shape.device_type], shape.sharding.samples});
  data_group_ = groups.make(0, tensor, copies());
  expert_data_group_ = groups.make(0, tensor * settings.expert, copies() / settings.expert);
  optimizer_rate_ = BytesPerSecond(HUGE_VAL);
  for (const Replica& replica : replicas_)
    optimizer_rate_ = std::min(
        optimizer_rate_, replica.device->memory_bandwidth * replica.device->efficiency.optimizer);
}

UnitCost SpanFrame::time(const UnitRange& units, Recompute recompute) const {
  UnitCost worst = replicas_.front().table->cost(units, recompute);
  for (std::size_t r = 1; r < replicas_.size(); ++r) {
    const UnitCost cost = replicas_[r].table->cost(units, recompute);
    if (cost.total() > worst.total()) worst = cost;
  }
  if (settings_.zero == ZeroStage::parameters) {
    // Every micro-batch gathers the weights in forward and again in backward, and scatters the
    // gradients, side by side with compute.
    const StateBytes state = state_bytes(problem_.job);
    const double parameters = worst.parameters + worst.expert_parameters;
    const Seconds gather = all_gather(data_group_, Bytes(parameters * state.weight));
    const Seconds scatter = reduce_scatter(data_group_, Bytes(parameters * state.gradient));
    const Seconds forward = worst.forward_total();
    const Seconds backward = worst.backward_total();
    worst.forward_comm += overlapped(forward, gather) - forward;
    worst.backward_comm += overlapped(backward, gather + scatter) - backward;
  }
  return worst;
}

Seconds SpanFrame::gradient_sync(const UnitRange& units) const {
  if (settings_.zero == ZeroStage::parameters) return {};
  const StateBytes state = state_bytes(problem_.job);
  const UnitCost cost = replicas_.front().table->cost(units, Recompute::none);
  const auto reduce = [&](double parameters, const Group& group) {
    if (parameters <= 0 || group.members == 1) return Seconds(0);
    const Bytes gradients(parameters * state.gradient);
    if (settings_.zero == ZeroStage::off) return all_reduce(group, gradients);
    return reduce_scatter(group, gradients) + all_gather(group, Bytes(parameters * state.weight));
  };
  return traits_of(problem_.job.framework).data_exposed *
         (reduce(cost.parameters, data_group_) +
          reduce(cost.expert_parameters, expert_data_group_));
}

double SpanFrame::cut(const UnitCost& cost) const {
  return cost.parameters / copies() + cost.expert_parameters * settings_.expert / copies();
}

Seconds SpanFrame::optimizer(const UnitRange& units) const {
  const UnitCost cost = replicas_.front().table->cost(units, Recompute::none);
  const double updated =
      settings_.zero == ZeroStage::off ? cost.parameters + cost.expert_parameters : cut(cost);
  const double all = cost.parameters + cost.expert_parameters;
  if (all <= 0) return {};
  const double unmeasured = updated * (1 - cost.optimizer_parameters / all);
  return cost.optimizer * (updated / all) +
         Bytes(unmeasured * traits_of(problem_.job.framework).optimizer_bytes) / optimizer_rate_;
}

Source SpanFrame::time_source(const UnitRange& units) const {
  Source weakest = Source::measured;
  for (const Replica& replica : replicas_)
    weakest = std::max(weakest, replica.table->time_source(units));
  return weakest;
}

Source SpanFrame::memory_source(const UnitRange& units) const {
  Source weakest = Source::measured;
  for (const Replica& replica : replicas_)
    weakest = std::max(weakest, replica.table->memory_source(units));
  return weakest;
}

SpanFrame::Memory SpanFrame::memory(int replica, const UnitRange& units, Recompute recompute,
                                    double tied) const {
  const Replica& on = replicas_[replica];
  const StateBytes state = state_bytes(problem_.job);
  UnitCost cost = on.table->cost(units, recompute);
  cost.parameters += tied / tensor_;
  const double all = cost.parameters + cost.expert_parameters;
  const double shard = cut(cost);
  const bool cut_weights = settings_.zero == ZeroStage::parameters;
  const bool cut_gradients = cut_weights || settings_.zero == ZeroStage::gradients;
  const bool cut_optimizer = settings_.zero != ZeroStage::off;
  Memory memory;
  memory.weights = Bytes(state.weight * (cut_weights ? shard : all));
  memory.gradients = Bytes(state.gradient * (cut_gradients ? shard : all));
  memory.optimizer_state =
      Bytes(state.optimizer * (cut_optimizer ? shard : all) * (1 - settings_.offload));
  memory.saved = cost.saved;
  if (recompute == Recompute::full) memory.working_set = on.table->largest_working_set(units);
  // Two units' gathered weights are alive at once: the running one and the prefetched one.
  if (cut_weights) memory.workspace = Bytes(2 * state.weight * all / std::max(1, units.size()));
  memory.workspace += on.table->loss_workspace(units) + cost.held;
  memory.capacity = on.device->memory;
  memory.reserve = on.device->memory * problem_.job.reserve;
  return memory;
}

}  // namespace plait
