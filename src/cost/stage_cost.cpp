#include "cost/stage_cost.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "cost/framework.h"
#include "cost/schedule.h"

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

// Devices of the stage on each node.
std::map<int, int> devices_by_node(const Cluster& cluster, const Stage& stage) {
  std::map<int, int> count;
  for (const DeviceId id : stage.devices) ++count[cluster.device(id).node];
  return count;
}

// The devices of replica `d`, or, with stride, those that hold the same shard in all replicas.
std::vector<DeviceId> strided(const Stage& stage, int first, int stride, int count) {
  std::vector<DeviceId> ids;
  for (int i = 0; i < count; ++i) ids.push_back(stage.devices[first + i * stride]);
  return ids;
}

Group strided_group(const Cluster& cluster, const Stage& stage, const std::map<int, int>& by_node,
                    int first, int stride, int count) {
  const std::vector<DeviceId> ids = strided(stage, first, stride, count);
  std::map<int, int> members;
  for (const DeviceId id : ids) ++members[cluster.device(id).node];
  double sharing = 1;  // groups like this one that use a node's network at the same moment
  for (const auto& [node, own] : members)
    sharing = std::max(sharing, static_cast<double>(by_node.at(node)) / own);
  return group_of(cluster, ids, sharing);
}

// The distinct replicas of a span: equal ones cost the same.
std::vector<ReplicaShape> distinct_replicas(const Problem& problem, const Plan& plan,
                                            const Stage& stage, const Span& span,
                                            const std::map<int, int>& by_node) {
  const Cluster& cluster = problem.cluster;
  const int per_replica = span.tensor * plan.context;
  const double even =
      static_cast<double>(problem.job.global_batch) / plan.micro_batches / span.data;
  std::vector<ReplicaShape> out;
  for (int d = 0; d < span.data; ++d) {
    const int first = d * per_replica;
    ReplicaShape shape;
    shape.device_type = cluster.device(stage.devices[first]).type;
    shape.sharding = {.samples = stage.shares.empty() ? even : stage.shares[d],
                      .tensor = span.tensor,
                      .context = plan.context,
                      .expert = plan.expert,
                      .sequence_parallel = plan.sequence_parallel};
    shape.tensor_group = strided_group(cluster, stage, by_node, first, 1, span.tensor);
    if (plan.context > 1)
      shape.context_group =
          strided_group(cluster, stage, by_node, first, span.tensor, plan.context);
    if (plan.expert > 1) {
      // Experts are spread over neighbouring data and context ranks of one tensor rank.
      const int block = d * plan.context / plan.expert * plan.expert;
      shape.expert_group =
          strided_group(cluster, stage, by_node, block * span.tensor, span.tensor, plan.expert);
    }
    out.push_back(shape);
  }
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

struct SpanTotals {
  UnitCost cost;
  Bytes working_set;
  Source source = Source::analytic;
};

SpanTotals span_totals(const UnitTable& table, const Span& span) {
  SpanTotals totals{table.cost(span.units, span.recompute), {}, table.source()};
  if (span.recompute == Recompute::full) totals.working_set = table.largest_working_set(span.units);
  return totals;
}

// Bytes of logits in fp32 and their gradient that the loss needs beside what is saved.
Bytes loss_workspace(const Model& model, const Span& span, double samples, int context) {
  Bytes largest;
  for (int u = span.units.begin; u < span.units.end; ++u)
    for (const Op& op : model.unit(u).ops)
      if (op.kind == OpKind::loss)
        largest =
            std::max(largest, Bytes(4 * op.rows * op.columns * samples / context / span.tensor));
  return largest;
}

// Parameters of a tie that this stage keeps a second copy of, before sharding.
double tied_copies(const Model& model, const Stage& stage) {
  const auto holds = [&](int unit) {
    return std::ranges::any_of(stage.spans, [&](const Span& span) {
      return span.units.begin <= unit && unit < span.units.end;
    });
  };
  double copies = 0;
  for (const Tie& tie : model.ties)
    if (holds(tie.second) && !holds(tie.first)) copies += tie.parameters;
  return copies;
}

class StageWriter {
 public:
  StageWriter(const Problem& problem, const Plan& plan, int index, const TableSource& tables)
      : problem_(problem),
        plan_(plan),
        stage_(plan.stages[index]),
        index_(index),
        tables_(tables),
        state_(state_bytes(problem.job)),
        traits_(traits_of(problem.job.framework)),
        by_node_(devices_by_node(problem.cluster, stage_)) {}

  StageResult write() {
    PLAIT_CHECK(!stage_.spans.empty());
    for (const Span& span : stage_.spans)
      replicas_.push_back(distinct_replicas(problem_, plan_, stage_, span, by_node_));
    int end = -1;
    for (const Span& span : stage_.spans) {
      if (span.units.begin != end) {
        result_.chunk_forward.emplace_back();
        result_.chunk_backward.emplace_back();
        result_.chunk_weight_gradient.emplace_back();
      }
      end = span.units.end;
      add_times(span);
      add_sync(span);
    }
    add_memory();
    return std::move(result_);
  }

 private:
  int data_copies(const Span& span) const { return span.data * plan_.context; }
  const std::vector<ReplicaShape>& replicas(const Span& span) const {
    return replicas_[&span - stage_.spans.data()];
  }

  // The slowest replica's times.
  void add_times(const Span& span) {
    Seconds slowest(-1);
    UnitCost worst;
    for (const ReplicaShape& replica : replicas(span)) {
      const SpanTotals totals = span_totals(tables_(replica), span);
      result_.cost.source = totals.source;
      if (totals.cost.total() > slowest) {
        slowest = totals.cost.total();
        worst = totals.cost;
      }
    }
    if (plan_.zero == ZeroStage::parameters) gather_parameters(span, worst);
    StageCost& cost = result_.cost;
    cost.forward += worst.forward;
    cost.backward += worst.backward + worst.weight_gradient;
    cost.recompute += worst.recompute;
    cost.weight_gradient += worst.weight_gradient;
    cost.forward_comm += worst.forward_comm;
    cost.backward_comm += worst.backward_comm;
    result_.chunk_forward.back() += worst.forward_total();
    result_.chunk_backward.back() += worst.backward_total() - worst.weight_gradient;
    result_.chunk_weight_gradient.back() += worst.weight_gradient;
  }

  // ZeRO-3: every micro-batch gathers the weights in forward and again in backward, and scatters
  // the gradients, side by side with compute.
  void gather_parameters(const Span& span, UnitCost& cost) const {
    const Group group = data_group(span);
    const double parameters = cost.parameters + cost.expert_parameters;
    const Seconds gather = all_gather(group, Bytes(parameters * state_.weight));
    const Seconds scatter = reduce_scatter(group, Bytes(parameters * state_.gradient));
    const Seconds forward = cost.forward_total();
    const Seconds backward = cost.backward_total();
    cost.forward_comm += overlapped(forward, gather) - forward;
    cost.backward_comm += overlapped(backward, gather + scatter) - backward;
  }

  Group data_group(const Span& span) const {
    return strided_group(problem_.cluster, stage_, by_node_, 0, span.tensor, data_copies(span));
  }

  // Once a step: gradients are summed over the data-parallel copies, then the optimizer runs.
  void add_sync(const Span& span) {
    const UnitCost unit = span_totals(tables_(replicas(span).front()), span).cost;
    const double dense = unit.parameters;
    const double experts = unit.expert_parameters;
    const int copies = data_copies(span);
    const Group group = data_group(span);
    Seconds sync;
    const auto reduce = [&](double parameters, const Group& over) {
      if (parameters <= 0 || over.members == 1) return;
      const Bytes gradients(parameters * state_.gradient);
      if (plan_.zero == ZeroStage::off)
        sync += all_reduce(over, gradients);
      else if (plan_.zero != ZeroStage::parameters)
        sync +=
            reduce_scatter(over, gradients) + all_gather(over, Bytes(parameters * state_.weight));
    };
    reduce(dense, group);
    if (experts > 0 && plan_.expert < copies)
      reduce(experts, strided_group(problem_.cluster, stage_, by_node_, 0,
                                    span.tensor * plan_.expert, copies / plan_.expert));
    result_.cost.gradient_sync += traits_.data_exposed * sync;

    double updated = dense + experts;
    if (plan_.zero != ZeroStage::off) updated = dense / copies + experts * plan_.expert / copies;
    Seconds slowest;
    for (const DeviceId id : stage_.devices) {
      const DeviceType& type = problem_.cluster.type_of(id);
      slowest = std::max(slowest, Bytes(updated * traits_.optimizer_bytes) /
                                      (type.memory_bandwidth * type.efficiency.optimizer));
    }
    result_.cost.optimizer += slowest;
  }

  struct Memory {
    Bytes weights, gradients, optimizer_state, activations, workspace, capacity, reserve;
  };

  Memory replica_memory(const DeviceType& type, double share) const {
    Memory memory;
    const double chunks = static_cast<double>(result_.chunk_forward.size());
    const int live = chunks_in_flight(plan_.schedule, plan_.stage_count(), index_,
                                      plan_.micro_batches, static_cast<int>(chunks));
    Bytes working_set;
    for (const Span& span : stage_.spans) {
      const auto [totals, samples] = memory_span(span, type, share);
      const int copies = data_copies(span);
      const double dense =
          totals.cost.parameters +
          (&span == &stage_.spans.back() ? tied_copies(problem_.model, stage_) / span.tensor : 0);
      const double experts = totals.cost.expert_parameters;
      const double all = dense + experts;
      const double cut = dense / copies + experts * plan_.expert / copies;
      const bool cut_weights = plan_.zero == ZeroStage::parameters;
      const bool cut_gradients = cut_weights || plan_.zero == ZeroStage::gradients;
      memory.weights += Bytes(state_.weight * (cut_weights ? cut : all));
      memory.gradients += Bytes(state_.gradient * (cut_gradients ? cut : all));
      memory.optimizer_state += Bytes(
          state_.optimizer * (plan_.zero == ZeroStage::off ? all : cut) * (1 - plan_.offload));
      if (cut_weights)
        memory.workspace += Bytes(2 * state_.weight * all / std::max(1, span.units.size()));
      memory.activations += totals.cost.saved * (live / chunks);
      working_set = std::max(working_set, totals.working_set);
      memory.workspace += loss_workspace(problem_.model, span, samples, plan_.context);
    }
    memory.activations += working_set;
    memory.capacity = type.memory;
    memory.reserve = type.memory * problem_.job.reserve;
    return memory;
  }

  struct MemorySpan {
    SpanTotals totals;
    double samples = 0;
  };
  // The span on the replica of this type and share.
  MemorySpan memory_span(const Span& span, const DeviceType& type, double share) const {
    for (const ReplicaShape& replica : replicas(span)) {
      const bool same_share = stage_.shares.empty() || replica.sharding.samples == share;
      if (&problem_.cluster.device_types[replica.device_type] == &type && same_share)
        return {span_totals(tables_(replica), span), replica.sharding.samples};
    }
    // Spans with other data degrees group the devices in other ways: any replica will do.
    const ReplicaShape& any = replicas(span).front();
    return {span_totals(tables_(any), span), any.sharding.samples};
  }

  void add_memory() {
    const Span& span = stage_.spans.front();
    bool first = true;
    for (const ReplicaShape& replica : replicas(span)) {
      const DeviceType& type = problem_.cluster.device_types[replica.device_type];
      const Memory memory = replica_memory(type, replica.sharding.samples);
      StageCost candidate = result_.cost;
      candidate.weights = memory.weights;
      candidate.gradients = memory.gradients;
      candidate.optimizer_state = memory.optimizer_state;
      candidate.activations = memory.activations;
      candidate.workspace = memory.workspace;
      candidate.capacity = memory.capacity;
      candidate.reserve = memory.reserve;
      if (first || candidate.spare() < result_.cost.spare()) result_.cost = candidate;
      first = false;
    }
  }

  const Problem& problem_;
  const Plan& plan_;
  const Stage& stage_;
  int index_;
  const TableSource& tables_;
  StateBytes state_;
  const FrameworkTraits& traits_;
  std::map<int, int> by_node_;
  std::vector<std::vector<ReplicaShape>> replicas_;  // by span
  StageResult result_;
};

}  // namespace

StageResult stage_cost(const Problem& problem, const Plan& plan, int index,
                       const TableSource& tables) {
  return StageWriter(problem, plan, index, tables).write();
}

Seconds hand_over_time(const Problem& problem, const Plan& plan, const Stage& from, const Stage& to,
                       int unit) {
  const Cluster& cluster = problem.cluster;
  const Span& last = from.spans.back();
  const Span& first = to.spans.front();
  const double samples = static_cast<double>(problem.job.global_batch) / plan.micro_batches;
  const Bytes whole(activation_bytes(problem.job.precision) * problem.model.unit(unit - 1).output *
                    samples / plan.context);
  // Bytes that one device sends, and that one receives.
  const auto per_device = [&](const Span& span) {
    return whole / (span.data * (plan.sequence_parallel ? span.tensor : 1.0));
  };
  const std::map<int, int> senders = devices_by_node(cluster, from);
  const std::map<int, int> receivers = devices_by_node(cluster, to);
  const BytesPerSecond limit = traits_of(problem.job.framework).send_limit;
  Seconds slowest;
  const int pairs = std::max(last.data, first.data);
  for (int r = 0; r < pairs; ++r) {
    const int d_from = static_cast<int>(static_cast<long>(r) * last.data / pairs);
    const int d_to = static_cast<int>(static_cast<long>(r) * first.data / pairs);
    const DeviceId a = from.devices[d_from * last.tensor * plan.context];
    const DeviceId b = to.devices[d_to * first.tensor * plan.context];
    const Link link = link_between(cluster, a, b);
    const bool same_node = cluster.device(a).node == cluster.device(b).node;
    const Efficiency& reached_a = cluster.type_of(a).efficiency;
    const Efficiency& reached_b = cluster.type_of(b).efficiency;
    const double reached = same_node ? std::min(reached_a.intra, reached_b.intra)
                                     : std::min(reached_a.inter, reached_b.inter);
    const double sharing_a = same_node ? 1 : senders.at(cluster.device(a).node);
    const double sharing_b = same_node ? 1 : receivers.at(cluster.device(b).node);
    BytesPerSecond rate = link.bandwidth * reached;
    if (limit > BytesPerSecond(0)) rate = std::min(rate, limit);
    const Seconds time =
        std::max(per_device(last) * sharing_a, per_device(first) * sharing_b) / rate;
    slowest = std::max(slowest, link.latency + time);
  }
  return slowest;
}

}  // namespace plait
