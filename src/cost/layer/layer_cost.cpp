#include "cost/layer/layer_cost.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "cost/comm/collectives.h"
#include "cost/comm/overlap.h"
#include "cost/framework/framework.h"
#include "cost/layer/measured.h"
#include "cost/layer/synchronised.h"
#include "cost/op/eager.h"
#include "cost/op/op_comm.h"
#include "cost/op/op_time.h"
#include "cost/op/saved_bytes.h"

namespace plait {
namespace {

// Two things that run side by side take as long as the longer, with a soft corner where they are
// close.
double beside(double a, double b, double corner) {
  const double longer = std::max(a, b);
  const double shorter = std::min(a, b);
  if (shorter <= 0) return longer;
  return longer * std::pow(1 + std::pow(shorter / longer, corner), 1 / corner);
}

// Compute and the gathering of weights ahead of it (docs/cost-model.md#zero).
constexpr double kGatherCorner = 4;

// Sums over the ops of a layer, before host time and recompute.
struct LayerSums {
  UnitCost unit;
  Seconds host;
  Seconds host_forward;
  bool is_table = false;  // an input or output layer: its host time is in `unit`
  Seconds attention;      // forward of the ops that selective recompute repeats
  Seconds last;           // forward of the ops after the last tensor that backward needs
  Bytes selective;        // saved when they are repeated
  Bytes loss;
  Bytes kept_loss;
  // Of its products, convolutions and attention: the weakest source; nothing when it has none.
  std::optional<Source> kernels;
};

LayerSums sums_of(const Problem& problem, const ReplicaShape& shape, const FrameworkTraits& traits,
                  const OpPoints& points, const LayerKind& kind) {
  const Job& job = problem.job;
  const DeviceType& device = problem.cluster.device_types[shape.device_type];
  const Sharding& s = shape.sharding;
  const CommCost comm_cost(problem, shape, traits);
  LayerSums sums;
  Seconds exchange;
  for (const Op& op : kind.ops) {
    OpTime time = op_time(job, problem.model, device, op, s);
    if (op.forward > Flops(0)) {
      const Source source = points.correct(job, problem.model, device, op, s, time);
      sums.kernels = std::max(sums.kernels.value_or(source), source);
    }
    const bool adds = op.kind == OpKind::elementwise && op.function == Function::add;
    if (!adds) sums.last = op.kind == OpKind::matmul ? time.forward : Seconds(0);
    if (adds) sums.last += time.forward;
    sums.unit.forward += time.forward;
    sums.unit.backward += time.backward;
    sums.unit.weight_gradient += time.weight_gradient;
    sums.host += time.host;
    sums.host_forward += time.host_forward;
    if (op.kind == OpKind::attention && job.attention == AttentionKernel::plain)
      sums.attention += time.forward;
    if (op.kind == OpKind::loss || op.split == Split::vocabulary) sums.is_table = true;
    const OpComm comm = comm_cost.of(op, time);
    sums.unit.forward_comm += comm.forward;
    sums.unit.backward_comm += comm.backward;
    sums.unit.network_forward += comm.network_forward;
    sums.unit.network_backward += comm.network_backward;
    exchange += comm.exchange;
    const SavedBytes saved = saved_bytes(job, problem.model, op, s);
    sums.unit.saved += saved.all;
    sums.selective += saved.selective;
    (op.split == Split::experts ? sums.unit.expert_parameters : sums.unit.parameters) +=
        parameters_per_device(op, s);
    if (op.kind == OpKind::loss) {
      const double share = s.samples / s.context / (op.split == Split::vocabulary ? s.tensor : 1);
      const double bytes =
          traits.logit_bytes * (traits.unfused ? eager_loss_share(job, problem.model) : 1.0);
      sums.loss += Bytes(bytes * op.rows * op.columns * share);
      sums.kept_loss += op.saved_mask * share;
    }
  }
  UnitCost& unit = sums.unit;
  unit.forward_comm += exposed(exchange, unit.forward, traits.expert_exposed);
  unit.backward_comm +=
      exposed(exchange, unit.backward + unit.weight_gradient, traits.expert_exposed);
  return sums;
}

// The work that each way of recompute adds and the activations that it leaves.
std::array<UnitCost, 3> recompute_choices(const LayerSums& sums, const FrameworkTraits& traits,
                                          Bytes input) {
  std::array<UnitCost, 3> choices;
  choices.fill(sums.unit);
  if (sums.is_table) return choices;  // frameworks recompute blocks only
  UnitCost& selective = choices[static_cast<int>(Recompute::selective)];
  if (traits.alternate) {
    selective.recompute = 0.5 * sums.unit.forward;
    selective.backward_comm += 0.5 * sums.unit.forward_comm;
    selective.network_backward += 0.5 * sums.unit.network_forward;
    selective.saved = std::min(sums.unit.saved, input + 0.5 * sums.unit.saved);
  } else {
    selective.recompute = sums.attention;
    selective.saved = sums.selective;
  }
  UnitCost& full = choices[static_cast<int>(Recompute::full)];
  // PyTorch stops repeating when it has the last tensor that backward needs.
  full.recompute = sums.unit.forward - (traits.unfused ? sums.last : Seconds(0));
  full.backward_comm += sums.unit.forward_comm;
  full.network_backward += sums.unit.network_forward;
  full.saved = std::min(sums.unit.saved, input);
  return choices;
}

void slow_down(UnitCost& unit, double factor) {
  for (Seconds* part : {&unit.forward, &unit.backward, &unit.weight_gradient, &unit.recompute,
                        &unit.forward_comm, &unit.backward_comm})
    *part = *part * factor;
}

// Weights cut over the replicas are gathered before each pass, and their gradients scattered after
// the backward pass, beside the compute of the neighbouring layers unless nothing overlaps.
void add_gathering(const StateBytes& state, const ReplicaShape& shape, bool overlaps,
                   UnitCost& unit) {
  const auto both = [&](auto&& collective, double bytes) {
    return collective(shape.weight_group, Bytes(bytes * unit.parameters)) +
           collective(shape.expert_weight_group, Bytes(bytes * unit.expert_parameters));
  };
  const Seconds gather = both(all_gather, state.gathered);
  const Seconds scatter = both(reduce_scatter, state.sent_gradient);
  const double forward = unit.forward_total().value;
  const double backward = unit.backward_total().value;
  const Seconds again = shape.gathers_backward ? gather : Seconds(0);
  const auto added = [&](double compute, Seconds comm) {
    return overlaps ? Seconds(beside(compute, comm.value, kGatherCorner) - compute) : comm;
  };
  unit.forward_comm += added(forward, gather);
  unit.backward_comm += added(backward, again + scatter);
  const double share = network_share(shape.weight_group);
  unit.network_forward += share * gather;
  unit.network_backward += share * (again + scatter);
}

void adjust(const Adjustment& by, bool tensor_group, LayerSums& sums) {
  for (Seconds* part : {&sums.unit.forward, &sums.unit.backward, &sums.unit.weight_gradient,
                        &sums.attention, &sums.last})
    *part = *part * by.device;
  sums.host = sums.host * by.host;
  sums.host_forward = sums.host_forward * by.host;
  if (!tensor_group) return;
  sums.unit.forward_comm += by.wait;
  sums.unit.backward_comm += by.wait;
}

bool is_table(const LayerKind& kind) {
  return std::ranges::any_of(kind.ops, [](const Op& op) {
    return op.kind == OpKind::loss || op.split == Split::vocabulary;
  });
}

// While the device computes the output layer, which takes one launch to start, the host goes on
// and launches the backward passes: what a layer's share of that is.
Seconds launched_ahead(const Problem& problem, const ReplicaShape& shape,
                       const FrameworkTraits& traits, const OpPoints& points) {
  const Model& model = problem.model;
  const LayerKind& head = model.unit(model.unit_count() - 1);
  if (!is_table(head)) return {};
  const auto layers =
      std::ranges::count_if(model.units, [&](int kind) { return !is_table(model.kinds[kind]); });
  if (layers == 0) return {};
  const UnitCost unit = sums_of(problem, shape, traits, points, head).unit;
  return std::max(Seconds(0), unit.total() - 2 * traits.host_head) / static_cast<double>(layers);
}

// Times that the host needs for a layer beside those of the device.
struct HostSide {
  Seconds forward;
  Seconds backward;  // recompute included
  Seconds ahead;     // of the backward passes, launched before the device comes to them
};

// Recompute launches forward again; what it takes besides is spent in both passes.
HostSide host_side(const LayerSums& sums, const FrameworkTraits& traits, bool full, Seconds ahead) {
  constexpr double kCheckpointForward = 0.43;
  HostSide host{sums.host_forward, sums.host - sums.host_forward, ahead};
  if (!full) return host;
  host.backward += host.forward + (1 - kCheckpointForward) * traits.host_checkpoint;
  host.forward += kCheckpointForward * traits.host_checkpoint;
  return host;
}

// When the last kernel of a layer is done: none starts before it is launched, and launches run
// ahead as far as the device lags behind.
//   max(forward + backward of the device, host forward + device backward, host forward + backward)
double launched_time(const UnitCost& unit, const HostSide& host, double corner) {
  const double device = unit.total().value;
  const double backward = std::max(unit.backward_total(), host.backward - host.ahead).value;
  return beside(device, host.forward.value + backward, corner);
}

LayerCost analytic_cost(const Problem& problem, const ReplicaShape& shape, const OpPoints& points,
                        const LayerKind& kind, double input, const Adjustment& adjustment = {}) {
  const FrameworkTraits traits = traits_of(problem.job);
  const Sharding& s = shape.sharding;
  LayerSums sums = sums_of(problem, shape, traits, points, kind);
  adjust(adjustment, s.tensor > 1, sums);
  const double input_share = s.samples / s.context / (s.sequence_parallel ? s.tensor : 1);
  LayerCost cost;
  // What is between the kernels is analytic, so that a sum of measured ones is no measurement.
  if (sums.kernels && *sums.kernels != Source::analytic) cost.origin.time = Source::interpolated;
  if (!sums.is_table) {
    cost.repeated[static_cast<int>(Recompute::full)] = sums.unit.saved;
    cost.repeated[static_cast<int>(Recompute::selective)] =
        traits.alternate ? sums.unit.saved : sums.unit.saved - sums.selective;
  }
  cost.extent = {sums.loss, sums.kept_loss, 0, sums.is_table ? 1 : 0};
  if (sums.is_table) cost.extent.table_parameters = sums.unit.parameters;
  cost.input = Bytes(stream_bytes(problem.job) * input * input_share);
  cost.by_recompute = recompute_choices(sums, traits, cost.input);
  const bool cut = shape.weight_group.members > 1 || shape.expert_weight_group.members > 1;
  const Seconds ahead = traits.unfused && !sums.is_table
                            ? launched_ahead(problem, shape, traits, points)
                            : Seconds(0);
  for (int r = 0; r < 3; ++r) {
    UnitCost& unit = cost.by_recompute[r];
    const bool full = r == static_cast<int>(Recompute::full);
    const double device = unit.total().value;
    if (!sums.is_table && device > 0) {
      const double host =
          full ? sums.host.value * (1 + traits.host_recompute) + traits.host_checkpoint.value
               : sums.host.value;
      const double time = traits.unfused ? launched_time(unit, host_side(sums, traits, full, ahead),
                                                         traits.host_corner)
                                         : beside(device, host, traits.host_corner);
      slow_down(unit, time / device);
    }
    // The tables of the input and output layers are gathered once a step, with the first layer.
    if (cut && !sums.is_table)
      add_gathering(state_bytes(problem.job, true), shape, problem.job.overlap, unit);
  }
  return cost;
}

// The same replica with another sharding and whole weights. Tensor groups of another size are
// thought inside a node, which is where profiles are made.
ReplicaShape resharded(const Problem& problem, const ReplicaShape& shape,
                       const Sharding& sharding) {
  ReplicaShape other = shape;
  other.sharding = sharding;
  other.weight_group = {};
  other.expert_weight_group = {};
  if (sharding.tensor == shape.sharding.tensor) return other;
  const DeviceType& device = problem.cluster.device_types[shape.device_type];
  Group& group = other.tensor_group;
  if (group.per_node < 2)
    group.intra = {device.intra.bandwidth * device.efficiency.intra, device.intra.latency};
  group.members = sharding.tensor;
  group.nodes = 1;
  group.per_node = sharding.tensor;
  return other;
}

// Puts what was measured in the place of what the analytic model says.
void take_measured(const Problem& problem, const ReplicaShape& shape, const OpPoints& points,
                   const LayerKind& kind, double input, LayerCost& cost) {
  if (problem.profile.compute.empty()) return;
  const StateBytes state = state_bytes(problem.job);
  const AnalyticCost analytic = [&](const LayerKind& of, const Sharding& sharding) {
    return analytic_cost(problem, resharded(problem, shape, sharding), points, of, input)
        .by_recompute;
  };
  const MeasuredPlace place{.profile = problem.profile,
                            .model = problem.model,
                            .device_type = problem.cluster.device_types[shape.device_type].name,
                            .kind = kind,
                            .sharding = shape.sharding,
                            .split = shape.split,
                            .state_bytes = state.weight + state.gradient + state.optimizer,
                            .devices = problem.cluster.device_count()};
  const AnalyticSides sides = [&](const LayerKind& of, const Sharding& sharding) {
    const LayerSums sums =
        sums_of(problem, resharded(problem, shape, sharding), traits_of(problem.job), points, of);
    return LaunchedCost{sums.unit, sums.is_table ? Seconds(0) : sums.host};
  };
  if (const auto adjustment = explain_synchronised(place, sides)) {
    cost = analytic_cost(problem, shape, points, kind, input, *adjustment);
    cost.origin = adjustment->origin;
    return;
  }
  const auto measured = measured_cost(place, analytic);
  if (!measured) return;
  cost.by_recompute = measured->costs;
  cost.origin = measured->origin;
  cost.workspace = measured->workspace;
  if (cost.extent.tables > 0) cost.by_recompute.fill(cost.by_recompute[0]);
  const Bytes saved = cost.by_recompute[0].saved;
  cost.repeated[static_cast<int>(Recompute::full)] = saved;
  cost.repeated[static_cast<int>(Recompute::selective)] =
      saved - cost.by_recompute[static_cast<int>(Recompute::selective)].saved;
  if (cost.extent.tables > 0) cost.repeated = {};
  if (measured->input && cost.extent.tables == 0) {
    cost.input = *measured->input;
    cost.by_recompute[static_cast<int>(Recompute::full)].saved = cost.input;
  }
  if (measured->saved_all) {
    cost.extent.loss = Bytes(0);
    cost.extent.kept_loss = Bytes(0);
  }
  const bool cut = shape.weight_group.members > 1 || shape.expert_weight_group.members > 1;
  for (UnitCost& unit : cost.by_recompute) {
    unit.held = std::max(Bytes(0), unit.held - cost.extent.loss);
    if (cut && cost.extent.tables == 0)
      add_gathering(state_bytes(problem.job, true), shape, problem.job.overlap, unit);
  }
}

}  // namespace

LayerCost layer_cost(const Problem& problem, const ReplicaShape& shape, const OpPoints& points,
                     const LayerKind& kind, double input) {
  LayerCost cost = analytic_cost(problem, shape, points, kind, input);
  take_measured(problem, shape, points, kind, input, cost);
  return cost;
}

}  // namespace plait
