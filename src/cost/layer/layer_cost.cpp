#include "cost/layer/layer_cost.h"

#include <algorithm>
#include <cmath>

#include "cost/comm/collectives.h"
#include "cost/comm/overlap.h"
#include "cost/layer/measured.h"
#include "cost/layer/synchronised.h"

namespace plait {
namespace {

// Exponent that joins compute and the gathering of weights ahead of it (docs/cost-model.md#zero).
// Set, not fitted: with 4 the two cost 19 % more than the longer where they are equal, 1 % where
// one is 2.2 times the other.
constexpr double kGatherCorner = 4;

// The work that each way of recompute adds and the activations that it leaves.
std::array<UnitCost, 3> recompute_choices(const LayerSums& sums, const Kernels& kernels,
                                          Bytes input) {
  std::array<UnitCost, 3> choices;
  choices.fill(sums.unit);
  UnitCost& selective = choices[static_cast<int>(Recompute::selective)];
  if (kernels.traits().selective_recomputes_every_other_op) {
    selective.recompute = 0.5 * sums.unit.forward;
    selective.backward_comm += 0.5 * sums.unit.forward_comm;
    selective.network_backward += 0.5 * sums.unit.network_forward;
    selective.saved = std::min(sums.unit.saved, input + sums.every_other);
  } else {
    selective.recompute = sums.attention;
    selective.saved = sums.selective;
  }
  UnitCost& full = choices[static_cast<int>(Recompute::full)];
  full.recompute = sums.unit.forward - (kernels.stops_recompute_early() ? sums.last : Seconds(0));
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
// the backward pass, beside the compute of the neighbouring layers unless nothing overlaps. The
// units of a layer wait for it in proportion to their parameters.
void add_gathering(const ReplicaSetting& setting, int recompute, std::vector<LayerCost>& units) {
  const ReplicaShape& shape = setting.shape;
  const StateBytes state = state_bytes(setting.problem.job, true);
  UnitCost layer = units.front().by_recompute[recompute];
  for (std::size_t u = 1; u < units.size(); ++u) layer += units[u].by_recompute[recompute];
  const auto both = [&](auto&& collective, double dense_bytes, double expert_bytes) {
    return collective(shape.weight_group, Bytes(dense_bytes)) +
           collective(shape.expert_weight_group, Bytes(expert_bytes));
  };
  const Seconds gather =
      both(all_gather, state.gathered * layer.parameters, state.gathered * layer.expert_parameters);
  const Seconds scatter = both(reduce_scatter, state.sent_gradient * layer.trained,
                               state.sent_gradient * layer.trained_experts);
  const double forward = layer.forward_total().value;
  const double backward = layer.backward_total().value;
  const Seconds again = shape.gathers_backward ? gather : Seconds(0);
  const double inside = setting.traits().gather_exposed * links_share(shape.weight_group);
  const auto added = [&](double compute, Seconds comm) {
    if (!setting.problem.job.overlap) return comm;
    const double hidden = std::min(compute, inside * comm.value);
    return Seconds(beside(compute, comm.value, kGatherCorner) - compute + hidden);
  };
  const Seconds forward_wait = added(forward, gather);
  const Seconds backward_wait = added(backward, again + scatter);
  const double network = network_share(shape.weight_group);
  const double parameters = layer.parameters + layer.expert_parameters;
  for (LayerCost& unit : units) {
    UnitCost& cost = unit.by_recompute[recompute];
    const double share = units.size() == 1 || parameters <= 0
                             ? 1.0 / static_cast<double>(units.size())
                             : (cost.parameters + cost.expert_parameters) / parameters;
    cost.forward_comm += share * forward_wait;
    cost.backward_comm += share * backward_wait;
    cost.network_forward += share * network * gather;
    cost.network_backward += share * network * (again + scatter);
  }
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

// While the device computes the output layer, which takes few launches to start, the host goes on
// and launches the backward passes: what a layer's share of that is.
Seconds launched_ahead(const ReplicaSetting& setting) {
  const ModelLayers& layers = setting.layers;
  const LayerKind& head = layers.whole(layers.shapes[layers.shape_of.back()]);
  if (!is_table(head)) return {};
  const auto blocks = std::ranges::count_if(
      layers.shape_of, [&](int shape) { return !is_table(layers.whole(layers.shapes[shape])); });
  if (blocks == 0) return {};
  const LayerSums sums = sums_of(setting, head);
  const Seconds launched = sums.host + 2 * setting.traits().host_head;
  return std::max(Seconds(0), sums.unit.total() - launched) / static_cast<double>(blocks);
}

// Of elements of a sample that enter a unit, the bytes on one device.
Bytes entering(const ReplicaSetting& setting, double elements) {
  const Sharding& s = setting.shape.sharding;
  const double share = s.samples / s.context / (s.sequence_parallel ? s.tensor : 1);
  return Bytes(stream_bytes(setting.problem.job) * elements * share);
}

// What ops of a layer cost on the device, before it waits for the host. `input`: elements of a
// sample that enter them.
LayerCost device_cost(const ReplicaSetting& setting, const LayerSums& sums, bool is_table,
                      double input) {
  const FrameworkTraits& traits = setting.traits();
  LayerCost cost;
  cost.is_table = is_table;
  // What is between the kernels is analytic, so that a sum of measured ones is not a measurement.
  if (sums.kernels && *sums.kernels != Source::analytic) cost.origin.time = Source::interpolated;
  cost.extent = {sums.loss, sums.kept_loss, is_table ? sums.unit.parameters : 0};
  cost.input = entering(setting, input);
  cost.workspace = sums.unpacked;
  cost.by_recompute.fill(sums.unit);
  if (is_table) return cost;  // frameworks recompute blocks only
  cost.repeated[static_cast<int>(Recompute::full)] = sums.unit.saved;
  cost.repeated[static_cast<int>(Recompute::selective)] = traits.selective_recomputes_every_other_op
                                                              ? sums.unit.saved
                                                              : sums.unit.saved - sums.selective;
  cost.by_recompute = recompute_choices(sums, setting.kernels, cost.input);
  return cost;
}

// Slows the device down where the host launches its work too late.
void wait_for_host(const ReplicaSetting& setting, const LayerSums& sums, LayerCost& cost) {
  const Kernels& kernels = setting.kernels;
  HostWork host{sums.host, sums.host_forward};
  if (kernels.launches_ahead()) host.ahead = launched_ahead(setting);
  // The host walks over the modules of a layer in every pass, whose weights come and go.
  if (setting.shape.gathers) {
    host.forward += setting.traits().host_gather;
    host.total += 2 * setting.traits().host_gather;
  }
  for (int r = 0; r < 3; ++r) {
    UnitCost& unit = cost.by_recompute[r];
    const double device = unit.total().value;
    if (device <= 0) continue;
    host.recomputed = r == static_cast<int>(Recompute::full);
    slow_down(unit, kernels.layer_time(unit, host).value / device);
  }
}

LayerCost analytic_cost(const ReplicaSetting& setting, const LayerKind& layer, double input,
                        const Adjustment& adjustment = {}) {
  LayerSums sums = sums_of(setting, layer);
  adjust(adjustment, setting.shape.sharding.tensor > 1, sums);
  LayerCost cost = device_cost(setting, sums, is_table(layer), input);
  if (!cost.is_table) wait_for_host(setting, sums, cost);
  const double late =
      setting.device().efficiency.spread * slowest_of(setting.problem.cluster.device_count());
  for (UnitCost& unit : cost.by_recompute)
    if (late > 0) slow_down(unit, 1 + late);
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

// Puts what was measured in the place of what the analytic model says. `usual`: the kind as it is
// usually cut.
void take_measured(const ReplicaSetting& setting, const LayerKind& kind, const LayerKind& usual,
                   double input, LayerCost& cost) {
  const Problem& problem = setting.problem;
  const ReplicaShape& shape = setting.shape;
  if (problem.profile.compute.empty()) return;
  const StateBytes state = state_bytes(problem.job);
  const auto at_sharding = [&](const Sharding& sharding, auto&& cost_of) {
    const ReplicaShape other = resharded(problem, shape, sharding);
    return cost_of(ReplicaSetting{problem, other, setting.kernels, setting.points, setting.layers});
  };
  const AnalyticCost analytic = [&](const LayerKind& of, const Sharding& sharding) {
    return at_sharding(sharding, [&](const ReplicaSetting& there) {
      return analytic_cost(there, of, input).by_recompute;
    });
  };
  const MeasuredPlace place{.profile = problem.profile,
                            .model = problem.model,
                            .device_type = setting.device().name,
                            .kind = kind,
                            .usual = usual,
                            .sharding = shape.sharding,
                            .split = shape.split,
                            .state_bytes = state.weight + state.gradient + state.optimizer,
                            .devices = problem.cluster.device_count()};
  const AnalyticSides sides = [&](const LayerKind& of, const Sharding& sharding) {
    return at_sharding(sharding, [&](const ReplicaSetting& there) {
      const LayerSums sums = sums_of(there, of);
      return LaunchedCost{sums.unit, is_table(of) ? Seconds(0) : sums.host};
    });
  };
  if (const auto adjustment = explain_synchronised(place, sides)) {
    cost = analytic_cost(setting, kind, input, *adjustment);
    cost.origin = adjustment->origin;
    return;
  }
  const auto measured = measured_cost(place, analytic);
  if (!measured) return;
  cost.by_recompute = measured->costs;
  cost.origin = measured->origin;
  cost.workspace = measured->workspace;
  if (cost.is_table) cost.by_recompute.fill(cost.by_recompute[0]);
  const Bytes saved = cost.by_recompute[0].saved;
  cost.repeated[static_cast<int>(Recompute::full)] = saved;
  cost.repeated[static_cast<int>(Recompute::selective)] =
      saved - cost.by_recompute[static_cast<int>(Recompute::selective)].saved;
  if (cost.is_table) cost.repeated = {};
  if (measured->input && !cost.is_table) {
    cost.input = *measured->input;
    cost.by_recompute[static_cast<int>(Recompute::full)].saved = cost.input;
  }
  if (measured->saved_all) {
    cost.extent.loss = Bytes(0);
    cost.extent.kept_loss = Bytes(0);
  }
  for (UnitCost& unit : cost.by_recompute)
    unit.held = std::max(Bytes(0), unit.held - cost.extent.loss);
}

// The layer's units, each with its share of the analytic (or measured) cost of the layer, unless
// the unit itself was measured.
std::vector<LayerCost> costs_of_ops(const ReplicaSetting& setting, const LayerShape& layer) {
  const Model& model = setting.problem.model;
  const LayerKind& whole = *layer.together;
  const double input = setting.layers.input[layer.kinds.front()];
  LayerCost cost = analytic_cost(setting, whole, input);
  take_measured(setting, whole, usual_layer(model, layer), input, cost);
  std::vector<LayerCost> units;
  int last = last_position(whole.ops);
  for (const int kind : layer.kinds) {
    const std::vector<Op>& ops = setting.layers.kinds[kind].ops;
    const LayerSums sums = sums_of(setting, ops, last);
    LayerCost unit = device_cost(setting, sums, cost.is_table, 0);
    unit.input = entering(setting, setting.layers.input[kind]);
    units.push_back(unit);
    last -= static_cast<int>(ops.size());
  }
  units = shares_of(cost, std::move(units));
  for (std::size_t u = 0; u < units.size(); ++u) {
    const int kind = layer.kinds[u];
    take_measured(setting, setting.layers.kinds[kind], model.kinds[kind],
                  setting.layers.input[kind], units[u]);
    if (u > 0 && !units[u].is_table)
      units[u].by_recompute[static_cast<int>(Recompute::full)].saved = Bytes(0);
  }
  return units;
}

// Of a layer that is not trained, nor any before it: it runs forward only and keeps nothing.
void freeze(LayerCost& unit) {
  for (UnitCost& cost : unit.by_recompute) {
    cost.backward = cost.weight_gradient = cost.recompute = cost.backward_comm = Seconds(0);
    cost.network_backward = cost.optimizer = Seconds(0);
    cost.saved = Bytes(0);
    cost.trained = cost.trained_experts = cost.optimizer_parameters = 0;
  }
  unit.repeated = {};
}

}  // namespace

std::vector<LayerCost> layer_cost(const ReplicaSetting& setting, const LayerShape& layer) {
  std::vector<LayerCost> units;
  if (layer.together) {
    units = costs_of_ops(setting, layer);
  } else {
    const int kind = layer.kinds.front();
    const LayerKind& whole = setting.layers.kinds[kind];
    units.push_back(analytic_cost(setting, whole, setting.layers.input[kind]));
    take_measured(setting, whole, setting.problem.model.kinds[kind], setting.layers.input[kind],
                  units.front());
  }
  const ReplicaShape& shape = setting.shape;
  const bool cut = shape.weight_group.members > 1 || shape.expert_weight_group.members > 1;
  // The tables of the input and output layers are gathered once a step, with the first layer.
  if (cut && !units.front().is_table)
    for (int r = 0; r < 3; ++r) add_gathering(setting, r, units);
  if (setting.problem.model.kinds[layer.kinds.front()].frozen) std::ranges::for_each(units, freeze);
  return units;
}

}  // namespace plait
