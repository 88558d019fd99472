#include "cost/span_frame.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/error.h"
#include "cost/comm/measured_links.h"
#include "cost/comm/overlap.h"
#include "cost/framework/framework.h"

namespace plait {
namespace {

// Groups of `count` devices at distance `stride`; all such groups of the span work at once, so a
// node's network is shared by those that have members on it.
class GroupMaker {
 public:
  GroupMaker(const Cluster& cluster, std::span<const DeviceId> devices)
      : cluster_(cluster), devices_(devices), by_node_(by_node(cluster, devices)) {
    traits_.reserve(devices.size());
    int before = -1;
    int kind = 0;
    for (const DeviceId id : devices) {
      const Device& device = cluster.device(id);
      const bool same_node = device.node == before;
      if (!same_node) kind = node_kind(device.node);
      traits_.push_back({device.type, kind, same_node});
      before = device.node;
    }
  }

  // Whether groups among devices [a, a + count) are like those among [b, b + count): the same
  // types, links and zones of nodes, and the same devices share a node.
  bool alike(int a, int b, int count) const {
    for (int i = 0; i < count; ++i) {
      const Trait& x = traits_[a + i];
      const Trait& y = traits_[b + i];
      if (x.type != y.type || x.kind != y.kind) return false;
      if (i > 0 && x.same_node != y.same_node) return false;
    }
    return true;
  }

  Group make(int first, int stride, int count) const {
    if (count == 1) return {};
    std::vector<DeviceId> ids;
    ids.reserve(count);
    for (int i = 0; i < count; ++i) ids.push_back(devices_[first + i * stride]);
    double sharing = 1;
    for (const NodeShare& own : by_node(cluster_, ids))
      sharing =
          std::max(sharing, static_cast<double>(devices_on(by_node_, own.node)) / own.devices);
    return group_of(cluster_, ids, sharing);
  }

 private:
  int node_kind(int n) {
    const Node& node = cluster_.nodes[n];
    const NodeKind kind{node.zone, devices_on(by_node_, n), node.intra, node.uplink};
    const auto at = std::ranges::find(kinds_, kind);
    if (at != kinds_.end()) return static_cast<int>(at - kinds_.begin());
    kinds_.push_back(kind);
    return static_cast<int>(kinds_.size()) - 1;
  }

  using NodeKind = std::tuple<int, int, Link, Link>;  // zone, devices of the span, links
  struct Trait {
    int type = 0;
    int kind = 0;            // of the node
    bool same_node = false;  // as the device before
  };
  const Cluster& cluster_;
  std::span<const DeviceId> devices_;
  std::vector<NodeShare> by_node_;
  std::vector<NodeKind> kinds_;
  std::vector<Trait> traits_;  // of devices_
};

// What a replica's groups are made of: devices [begin, begin + count), its own ones from `first`
// on.
struct ReplicaPlace {
  int share = 0;
  int begin = 0;
  int count = 0;
  int first = 0;
};

}  // namespace

PlanSettings settings_of(const Plan& plan) {
  return {plan.micro_batches, plan.context,           plan.expert,
          plan.zero,          plan.sequence_parallel, plan.offload};
}

Plan plan_under(const PlanSettings& settings, Schedule schedule) {
  Plan plan;
  plan.schedule = schedule;
  plan.micro_batches = settings.micro_batches;
  plan.context = settings.context;
  plan.expert = settings.expert;
  plan.zero = settings.zero;
  plan.sequence_parallel = settings.sequence_parallel;
  plan.offload = settings.offload;
  return plan;
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

bool is_trained(const Problem& problem, const Tie& tie) {
  return !problem.job.adapters && !problem.model.unit(tie.first).frozen;
}

SpanFrame::SpanFrame(const Problem& problem, const PlanSettings& settings,
                     std::span<const DeviceId> devices, int tensor, int data,
                     std::span<const int> shares, const TableSource& tables, int split)
    : problem_(problem),
      settings_(settings),
      traits_(traits_of(problem.job)),
      state_(state_bytes(problem.job, settings.zero == ZeroStage::parameters)),
      optimizer_traffic_(optimizer_traffic(problem.job)),
      tensor_(tensor),
      data_(data) {
  PLAIT_CHECK(static_cast<int>(devices.size()) == tensor * data * settings.context);
  const Cluster& cluster = problem.cluster;
  GroupMaker groups(cluster, devices);
  const double even = static_cast<double>(problem.job.global_batch) / settings.micro_batches / data;
  data_group_ = groups.make(0, tensor, copies());
  expert_data_group_ = groups.make(0, tensor * settings.expert, copies() / settings.expert);
  const int group = problem.job.zero_group;
  shard_copies_ = group > 0 && copies() % group == 0 ? group : copies();
  shard_group_ = groups.make(0, tensor, shard_copies_);
  outer_group_ = groups.make(0, tensor * shard_copies_, copies() / shard_copies_);
  data_ring_ = Ring(data_group_);
  expert_data_ring_ = Ring(expert_data_group_);
  tied_are_trained_ = std::ranges::all_of(problem.model.ties,
                                          [&](const Tie& tie) { return is_trained(problem, tie); });
  // FSDP gathers weights for every micro-batch under ZeRO-2 too, once (SHARD_GRAD_OP).
  weights_are_cut_ = settings.zero == ZeroStage::parameters ||
                     (settings.zero == ZeroStage::gradients && problem.job.framework.fully_sharded);
  std::vector<ReplicaShape> shapes;
  std::vector<ReplicaPlace> seen;  // one of those that are alike
  for (int d = 0; d < data; ++d) {
    const int first = d * tensor * settings.context;
    // Experts are spread over neighbouring data and context ranks of one tensor rank.
    const int block = d * settings.context / settings.expert * settings.expert;
    const int begin = std::min(first, block * tensor);
    const int end = std::max(first + tensor * settings.context, (block + settings.expert) * tensor);
    const ReplicaPlace place{shares.empty() ? 0 : shares[d], begin, end - begin, first};
    const bool is_known = std::ranges::any_of(seen, [&](const ReplicaPlace& other) {
      return other.share == place.share && other.count == place.count &&
             other.first - other.begin == first - begin &&
             groups.alike(other.begin, begin, place.count);
    });
    if (is_known) continue;
    seen.push_back(place);
    // Devices of several types that share a sequence wait for the slowest of them.
    std::vector<int> types;
    for (int c = 0; c < settings.context; ++c) {
      const int own = first + c * tensor;
      const int type = cluster.device(devices[own]).type;
      if (std::ranges::find(types, type) != types.end()) continue;
      types.push_back(type);
      ReplicaShape shape;
      shape.device_type = type;
      shape.sharding = {.samples = shares.empty() ? even : shares[d],
                        .tensor = tensor,
                        .context = settings.context,
                        .expert = settings.expert,
                        .sequence_parallel = settings.sequence_parallel};
      shape.tensor_group = groups.make(own, 1, tensor);
      shape.context_group = groups.make(first, tensor, settings.context);
      shape.expert_group = groups.make(block * tensor, tensor, settings.expert);
      if (weights_are_cut_) {
        shape.weight_group = shard_group_;
        shape.expert_weight_group = expert_data_group_;
        shape.gathers = true;
        shape.gathers_backward = settings.zero == ZeroStage::parameters;
      }
      shape.split = split;
      shapes.push_back(shape);
    }
  }
  std::ranges::sort(shapes);
  shapes.erase(std::unique(shapes.begin(), shapes.end()), shapes.end());
  for (const ReplicaShape& shape : shapes)
    replicas_.push_back(
        {&tables(shape), &cluster.device_types[shape.device_type], shape.sharding.samples});
}

UnitCost SpanFrame::time(const UnitRange& units, Recompute recompute) const {
  UnitCost worst = replicas_.front().table->cost(units, recompute);
  for (std::size_t r = 1; r < replicas_.size(); ++r) {
    const UnitCost cost = replicas_[r].table->cost(units, recompute);
    if (cost.total() > worst.total()) worst = cost;
  }
  return worst;
}

UnitCost SpanFrame::time(RecomputedRuns runs) const {
  UnitCost worst;
  for (const Replica& replica : replicas_) {
    UnitCost cost = replica.table->cost(runs.front().units, runs.front().recompute);
    for (const RecomputedRun& run : runs.subspan(1))
      cost += replica.table->cost(run.units, run.recompute);
    if (&replica == &replicas_.front() || cost.total() > worst.total()) worst = cost;
  }
  return worst;
}

// The sum of an all-reduce and, for ZeRO, a reduce-scatter hide behind the backward pass; only the
// all-gather of updated weights can hide behind the next forward pass.
SpanFrame::Reduction SpanFrame::reduce(double parameters, const Group& group,
                                       const Ring& ring) const {
  if (parameters <= 0 || group.members == 1) return {};
  const Bytes gradients(parameters * state_.sent_gradient);
  const Bytes weights(parameters * state_.gathered);
  const bool plain = settings_.zero == ZeroStage::off;
  if (problem_.profile.collectives.empty()) {
    if (plain) return {2 * ring.one_way(gradients), {}};
    const Seconds pieces = parameters * piece_latency(ring);
    if (shard_copies_ < copies() && &group == &data_group_) return hybrid(gradients, weights);
    return {ring.one_way(gradients) + pieces, ring.one_way(weights) + pieces};
  }
  const MeasuredLinks links(problem_.profile, replicas_.front().device->name);
  if (plain) return {links.all_reduce(group, gradients), {}};
  return {links.reduce_scatter(group, gradients), links.all_gather(group, weights)};
}

// Of a parameter, where every tensor has a collective of its own.
Seconds SpanFrame::piece_latency(const Ring& ring) const {
  return of_parameter(traits_.sync_pieces * ring.ring_latency());
}

// Of a parameter, what a block takes.
Seconds SpanFrame::of_parameter(Seconds block) const {
  if (block <= Seconds(0)) return {};
  const UnitRange whole{0, problem_.model.unit_count()};
  const double parameters = block_parameters(*replicas_.front().table, whole);
  return parameters > 0 ? block / parameters : Seconds(0);
}

// Gradients are scattered in a group and its parts summed over the groups; weights are gathered in
// the group.
SpanFrame::Reduction SpanFrame::hybrid(Bytes gradients, Bytes weights) const {
  const double parts = shard_copies_;
  return {reduce_scatter(shard_group_, gradients) + all_reduce(outer_group_, gradients / parts),
          all_gather(shard_group_, weights)};
}

double SpanFrame::block_parameters(const UnitTable& table, const UnitRange& units) const {
  const UnitTable::Extent extent = table.extent(units);
  const int blocks = table.blocks(units);
  if (blocks == 0) return 0;
  const UnitCost cost = table.cost(units, Recompute::none);
  return (cost.parameters + cost.expert_parameters - extent.table_parameters) / blocks;
}

double SpanFrame::trained_share(const UnitTable& table, const UnitRange& units) const {
  const UnitCost cost = table.cost(units, Recompute::none);
  const double all = cost.parameters + cost.expert_parameters;
  return all > 0 ? (cost.trained + cost.trained_experts) / all : 0;
}

SpanFrame::Cover SpanFrame::cover(const UnitCost& cost, bool split) const {
  Cover cover = cover_of({cost.forward_total(), cost.backward_total()},
                         {cost.network_forward, cost.network_backward});
  if (split) cover.backward = std::min(cover.backward, cost.weight_gradient);
  return cover;
}

SpanFrame::Cover SpanFrame::cover_of(const PassTime& time, const PassTime& network) const {
  const double shared = data_group_.nodes > 1 ? 1 : 0;
  return {std::max(Seconds(0), time.forward - shared * network.forward),
          std::max(Seconds(0), time.backward - shared * network.backward)};
}

SpanFrame::Reduction SpanFrame::reductions(const UnitRange& units) const {
  const UnitCost cost = replicas_.front().table->cost(units, Recompute::none);
  const Reduction all = reduce(cost.trained, data_group_, data_ring_);
  const Reduction experts = reduce(cost.trained_experts, expert_data_group_, expert_data_ring_);
  return {all.gradients + experts.gradients, all.weights + experts.weights};
}

// Of weights that are cut: what nothing runs beside, the first gathering and the last scattering.
Seconds SpanFrame::block_sync(const UnitRange& units) const {
  const UnitTable& table = *replicas_.front().table;
  const double block = block_parameters(table, units);
  const double trained = block * trained_share(table, units);
  const Bytes gradients(trained * state_.sent_gradient);
  return all_gather(shard_group_, Bytes(block * state_.gathered)) +
         reduce_scatter(shard_group_, gradients) +
         all_reduce(outer_group_, gradients / static_cast<double>(shard_copies_));
}

Seconds SpanFrame::gradient_sync(const UnitRange& units, const Cover& cover) const {
  if (weights_are_cut_) return block_sync(units);
  const Reduction whole = reductions(units);
  const Reduction first = reductions(first_layer(units));
  return std::max(first.gradients, exposed(whole.gradients, cover.backward, traits_.data_exposed)) +
         std::max(first.weights, exposed(whole.weights, cover.forward, traits_.data_exposed));
}

Seconds SpanFrame::whole_gradient_sync(const UnitRange& units) const {
  return gradient_sync(units, {});
}

Seconds SpanFrame::least_gradient_sync(const UnitRange& units) const {
  if (weights_are_cut_) return gradient_sync(units, {});
  const Reduction whole = reductions(units);
  return traits_.data_exposed * (whole.gradients + whole.weights);
}

Seconds SpanFrame::sync_network(const UnitRange& units) const {
  return network_share(data_group_) * whole_gradient_sync(units);
}

double SpanFrame::cut(double parameters, double expert_parameters) const {
  return parameters / shard_copies_ + expert_parameters * settings_.expert / copies();
}

// A parameter whose state is on the device is read and written there. Of one whose state is in the
// host's memory the gradient goes there, the processors update it, and the weight comes back.
Seconds SpanFrame::update_time(const DeviceType& device) const {
  const Seconds here =
      Bytes(optimizer_traffic_) / (device.memory_bandwidth * device.efficiency.optimizer);
  if (settings_.offload <= 0) return here;
  const Seconds there = Bytes(state_.sent_gradient + state_.gathered) / device.host_link +
                        Bytes(host_update_traffic(problem_.job)) / device.host_memory;
  return (1 - settings_.offload) * here + settings_.offload * there;
}

Seconds SpanFrame::optimizer(const UnitRange& units) const {
  Seconds slowest;
  for (const Replica& replica : replicas_) {
    const UnitCost cost = replica.table->cost(units, Recompute::none);
    const double all = cost.trained + cost.trained_experts;
    if (all <= 0) continue;
    const double updated =
        settings_.zero == ZeroStage::off ? all : cut(cost.trained, cost.trained_experts);
    double unmeasured = updated;
    Seconds time;
    if (is_measured(cost)) {
      unmeasured *= 1 - cost.optimizer_parameters / all;
      time = cost.optimizer * (updated / all);
    }
    slowest = std::max(slowest, time + unmeasured * update_time(*replica.device) +
                                    all * of_parameter(traits_.host_update));
  }
  return slowest;
}

// Of all parameters, on the device.
bool SpanFrame::is_measured(const UnitCost& cost) const {
  return cost.optimizer_parameters > 0 && !problem_.job.adapters && settings_.offload <= 0;
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

}  // namespace plait
