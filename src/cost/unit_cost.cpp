#include "cost/unit_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "cost/eager.h"
#include "cost/framework.h"
#include "cost/measured.h"
#include "cost/measured_links.h"
#include "cost/op_points.h"
#include "cost/synchronised.h"

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
// Sequence parallelism gathers the input once more for the weight gradient: a quarter of the
// traffic that backward has without it.
constexpr double kSequenceParallelBackward = 1.25;

Seconds tensor_reduction(const MeasuredLinks& links, const Group& group, bool sequence_parallel,
                         Bytes size) {
  return sequence_parallel ? links.reduce_scatter(group, size) + links.all_gather(group, size)
                           : links.all_reduce(group, size);
}

// Communication of one op for one micro-batch, as far as compute does not hide it.
struct OpComm {
  Seconds forward;
  Seconds backward;
};

class CommCost {
 public:
  CommCost(const Problem& problem, const ReplicaShape& shape, const FrameworkTraits& traits)
      : model_(problem.model),
        links_(problem.profile, problem.cluster.device_types[shape.device_type].name),
        shape_(shape),
        traits_(traits),
        element_(activation_bytes(problem.job.precision)),
        per_device_(shape.sharding.samples / shape.sharding.context) {}

  OpComm of(const Op& op) const {
    OpComm comm;
    if (shape_.sharding.tensor > 1) add_tensor(op, comm);
    if (shape_.sharding.expert > 1 && op.expert_exchange > 0) add_expert(op, comm);
    if (shape_.sharding.context > 1 && op.kind == OpKind::attention) add_context(op, comm);
    return comm;
  }

 private:
  void add_tensor(const Op& op, OpComm& comm) const {
    const Sharding& s = shape_.sharding;
    if (op.kind == OpKind::loss) {
      // Maximum, sum of exponentials and target logit of every position, one after the other.
      if (op.forward_reduce > 0)
        comm.forward += 3 * all_reduce(shape_.tensor_group, Bytes(4 * op.rows * per_device_));
      return;
    }
    const auto reduced = [&](double elements) {
      if (elements <= 0) return Seconds(0);
      return tensor_reduction(links_, shape_.tensor_group, s.sequence_parallel,
                              Bytes(element_ * elements * per_device_));
    };
    const bool vocabulary = op.split == Split::vocabulary;
    const double backward = vocabulary ? 1
                                       : traits_.tensor_backward *
                                             (s.sequence_parallel ? kSequenceParallelBackward : 1);
    const double forward = op.kind == OpKind::embedding ? 1 : traits_.tensor_exposed;
    comm.forward += forward * reduced(op.forward_reduce);
    comm.backward += traits_.tensor_exposed * backward * reduced(op.backward_reduce);
    // A block has two ops that reduce forward; each also waits for the slowest device.
    if (op.forward_reduce > 0 && !vocabulary)
      comm.backward +=
          traits_.tensor_skew / 2 * std::pow(std::log2(s.tensor), traits_.tensor_skew_power);
  }

  void add_expert(const Op& op, OpComm& comm) const {
    const double visits = op.rows * op.count / std::max(1, model_.sequence_length);
    const Bytes sent(element_ * op.expert_exchange * per_device_ / shape_.sharding.tensor);
    const Seconds time = traits_.expert_exposed * all_to_all(shape_.expert_group, sent, visits);
    comm.forward += time;
    comm.backward += time;
  }

  void add_context(const Op& op, OpComm& comm) const {
    // Keys and values go round the ring once forward, and with their gradients once backward.
    const Sharding& s = shape_.sharding;
    const double heads = std::max(op.kv_count / s.tensor, 1.0);
    const Bytes ring(element_ * 2 * op.columns * op.inner * heads * s.samples);
    const Seconds time = traits_.context_exposed * all_gather(shape_.context_group, ring);
    comm.forward += time;
    comm.backward += 2 * time;
  }

  const Model& model_;
  const MeasuredLinks links_;
  const ReplicaShape& shape_;
  const FrameworkTraits& traits_;
  const double element_;
  const double per_device_;
};

struct KindCost {
  std::array<UnitCost, 3> by_recompute;
  std::array<Bytes, 3> repeated;  // by recompute
  Bytes input;                    // that recompute keeps to begin here
  Bytes workspace;                // measured
  UnitTable::Extent extent;
  Origin origin;
};

// Sums over the ops of a layer, before host time and recompute.
struct KindSums {
  UnitCost unit;
  Seconds host;
  bool is_table = false;  // an input or output layer: its host time is in `unit`
  Seconds attention;      // forward of the ops that selective recompute repeats
  Bytes selective;        // saved when they are repeated
  Bytes loss;
  Bytes kept_loss;
  // Of its products, convolutions and attention: the weakest source; nothing when it has none.
  std::optional<Source> kernels;
};

KindSums sums_of(const Problem& problem, const ReplicaShape& shape, const FrameworkTraits& traits,
                 const OpPoints& points, const LayerKind& kind) {
  const Job& job = problem.job;
  const DeviceType& device = problem.cluster.device_types[shape.device_type];
  const Sharding& s = shape.sharding;
  const CommCost comm_cost(problem, shape, traits);
  KindSums sums;
  for (const Op& op : kind.ops) {
    OpTime time = op_time(job, problem.model, device, op, s);
    if (op.forward > Flops(0)) {
      const Source source = points.correct(job, problem.model, device, op, s, time);
      sums.kernels = std::max(sums.kernels.value_or(source), source);
    }
    sums.unit.forward += time.forward;
    sums.unit.backward += time.backward;
    sums.unit.weight_gradient += time.weight_gradient;
    sums.host += time.host;
    if (op.kind == OpKind::attention && job.attention == AttentionKernel::plain)
      sums.attention += time.forward;
    if (op.kind == OpKind::loss || op.split == Split::vocabulary) sums.is_table = true;
    const OpComm comm = comm_cost.of(op);
    sums.unit.forward_comm += comm.forward;
    sums.unit.backward_comm += comm.backward;
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
  return sums;
}

// The work that each way of recompute adds and the activations that it leaves.
std::array<UnitCost, 3> recompute_choices(const KindSums& sums, const FrameworkTraits& traits,
                                          Bytes input) {
  std::array<UnitCost, 3> choices;
  choices.fill(sums.unit);
  if (sums.is_table) return choices;  // frameworks recompute blocks only
  UnitCost& selective = choices[static_cast<int>(Recompute::selective)];
  if (traits.alternate) {
    selective.recompute = 0.5 * sums.unit.forward;
    selective.backward_comm += 0.5 * sums.unit.forward_comm;
    selective.saved = std::min(sums.unit.saved, input + 0.5 * sums.unit.saved);
  } else {
    selective.recompute = sums.attention;
    selective.saved = sums.selective;
  }
  UnitCost& full = choices[static_cast<int>(Recompute::full)];
  full.recompute = sums.unit.forward;
  full.backward_comm += sums.unit.forward_comm;
  full.saved = std::min(sums.unit.saved, input);
  return choices;
}

void slow_down(UnitCost& unit, double factor) {
  for (Seconds* part : {&unit.forward, &unit.backward, &unit.weight_gradient, &unit.recompute,
                        &unit.forward_comm, &unit.backward_comm})
    *part = *part * factor;
}

// Weights cut over the replicas are gathered before each pass, and their gradients scattered after
// the backward pass, beside the compute of the neighbouring layers.
void add_gathering(const StateBytes& state, const ReplicaShape& shape, UnitCost& unit) {
  const auto both = [&](auto&& collective, double bytes) {
    return collective(shape.weight_group, Bytes(bytes * unit.parameters)) +
           collective(shape.expert_weight_group, Bytes(bytes * unit.expert_parameters));
  };
  const Seconds gather = both(all_gather, state.gathered);
  const Seconds scatter = both(reduce_scatter, state.sent_gradient);
  const double forward = unit.forward_total().value;
  const double backward = unit.backward_total().value;
  const Seconds again = shape.gathers_backward ? gather : Seconds(0);
  unit.forward_comm += Seconds(beside(forward, gather.value, kGatherCorner) - forward);
  unit.backward_comm +=
      Seconds(beside(backward, (again + scatter).value, kGatherCorner) - backward);
}

void adjust(const Adjustment& by, bool tensor_group, KindSums& sums) {
  for (Seconds* part :
       {&sums.unit.forward, &sums.unit.backward, &sums.unit.weight_gradient, &sums.attention})
    *part = *part * by.device;
  sums.host = sums.host * by.host;
  if (!tensor_group) return;
  sums.unit.forward_comm += by.wait;
  sums.unit.backward_comm += by.wait;
}

KindCost kind_cost(const Problem& problem, const ReplicaShape& shape, const OpPoints& points,
                   const LayerKind& kind, double input, const Adjustment& adjustment = {}) {
  const FrameworkTraits traits = traits_of(problem.job);
  const Sharding& s = shape.sharding;
  KindSums sums = sums_of(problem, shape, traits, points, kind);
  adjust(adjustment, s.tensor > 1, sums);
  const double input_share = s.samples / s.context / (s.sequence_parallel ? s.tensor : 1);
  KindCost cost;
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
  for (int r = 0; r < 3; ++r) {
    UnitCost& unit = cost.by_recompute[r];
    const bool full = r == static_cast<int>(Recompute::full);
    const double host =
        full ? sums.host.value * (1 + traits.host_recompute) + traits.host_checkpoint.value
             : sums.host.value;
    const double device = unit.total().value;
    if (!sums.is_table && device > 0)
      slow_down(unit, beside(device, host, traits.host_corner) / device);
    // The tables of the input and output layers are gathered once a step, with the first layer.
    if (cut && !sums.is_table) add_gathering(state_bytes(problem.job, true), shape, unit);
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
                   const LayerKind& kind, double input, KindCost& cost) {
  if (problem.profile.compute.empty()) return;
  const StateBytes state = state_bytes(problem.job);
  const AnalyticCost analytic = [&](const LayerKind& of, const Sharding& sharding) {
    return kind_cost(problem, resharded(problem, shape, sharding), points, of, input).by_recompute;
  };
  const MeasuredPlace place{.profile = problem.profile,
                            .model = problem.model,
                            .device_type = problem.cluster.device_types[shape.device_type].name,
                            .kind = kind,
                            .sharding = shape.sharding,
                            .split = shape.split,
                            .state_bytes = state.weight + state.gradient + state.optimizer};
  const AnalyticSides sides = [&](const LayerKind& of, const Sharding& sharding) {
    const KindSums sums =
        sums_of(problem, resharded(problem, shape, sharding), traits_of(problem.job), points, of);
    return LaunchedCost{sums.unit, sums.is_table ? Seconds(0) : sums.host};
  };
  if (const auto adjustment = explain_synchronised(place, sides)) {
    cost = kind_cost(problem, shape, points, kind, input, *adjustment);
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
    if (cut && cost.extent.tables == 0) add_gathering(state_bytes(problem.job, true), shape, unit);
  }
}

}  // namespace

UnitTable::UnitTable(const Problem& problem, const ReplicaShape& shape) {
  const Model& model = problem.model;
  // A kind's input is the output of the unit before it; kinds that follow several others take the
  // largest.
  std::vector<double> input(model.kinds.size(), 0);
  for (int u = 1; u < model.unit_count(); ++u)
    input[model.units[u]] = std::max(input[model.units[u]], model.unit(u - 1).output);
  const OpPoints points(problem.profile, problem.cluster.device_types[shape.device_type].name);
  std::vector<KindCost> kinds;
  for (std::size_t k = 0; k < model.kinds.size(); ++k) {
    const LayerKind& kind = model.kinds[k];
    kinds.push_back(kind_cost(problem, shape, points, kind, input[k]));
    take_measured(problem, shape, points, kind, input[k], kinds.back());
    if (!kind.starts_layer && kinds.back().extent.tables == 0)
      kinds.back().by_recompute[static_cast<int>(Recompute::full)].saved = Bytes(0);
  }
  for (int r = 0; r < 3; ++r) {
    prefix_[r].reserve(model.units.size() + 1);
    prefix_[r].emplace_back();
    for (const int kind : model.units) {
      UnitCost sum = prefix_[r].back();
      sum += kinds[kind].by_recompute[r];
      prefix_[r].push_back(sum);
    }
  }
  extent_.emplace_back();
  for (const int kind : model.units) {
    const Extent& own = kinds[kind].extent;
    Extent sum = extent_.back();
    sum.loss += own.loss;
    sum.kept_loss += own.kept_loss;
    sum.table_parameters += own.table_parameters;
    sum.tables += own.tables;
    extent_.push_back(sum);
  }
  const auto of_units = [&](auto&& part) {
    std::vector<Bytes> values;
    for (const int kind : model.units) values.push_back(part(kinds[kind]));
    return values;
  };
  for (const int r : {static_cast<int>(Recompute::selective), static_cast<int>(Recompute::full)})
    working_set_[r] = levels_of(of_units([&](const KindCost& kind) { return kind.repeated[r]; }));
  if (std::ranges::any_of(kinds, [](const KindCost& kind) { return kind.workspace > Bytes(0); }))
    workspace_ = levels_of(of_units([](const KindCost& kind) { return kind.workspace; }));
  time_counts_.emplace_back();
  memory_counts_.emplace_back();
  for (const int kind : model.units) {
    const auto count = [](SourceCounts& counts, Source source) {
      counts.push_back(counts.back());
      if (source != Source::measured) ++counts.back()[static_cast<int>(source) - 1];
    };
    count(time_counts_, kinds[kind].origin.time);
    count(memory_counts_, kinds[kind].origin.memory);
  }
  for (const KindCost& kind : kinds) origins_.push_back(kind.origin);
  kind_of_ = model.units;
  in_ops_ = !std::ranges::all_of(model.kinds, &LayerKind::starts_layer);
  if (!in_ops_) return;
  inside_input_ = of_units([](const KindCost& kind) { return kind.input; });
  next_layer_.assign(model.units.size(), model.unit_count());
  for (int u = model.unit_count() - 1; u >= 0; --u) {
    if (u + 1 < model.unit_count())
      next_layer_[u] = model.unit(u + 1).starts_layer ? u + 1 : next_layer_[u + 1];
    if (model.unit(u).starts_layer) inside_input_[u] = Bytes(0);
  }
}

UnitTable::Levels UnitTable::levels_of(std::vector<Bytes> units) {
  Levels levels{std::move(units)};
  const std::size_t count = levels.front().size();
  for (std::size_t width = 2; width <= count; width *= 2) {
    const std::vector<Bytes>& half = levels.back();
    std::vector<Bytes> level;
    for (std::size_t u = 0; u + width <= count; ++u)
      level.push_back(std::max(half[u], half[u + width / 2]));
    levels.push_back(std::move(level));
  }
  return levels;
}

Bytes UnitTable::most(const Levels& levels, const UnitRange& range) {
  const int level = std::bit_width(static_cast<unsigned>(range.size())) - 1;
  return std::max(levels[level][range.begin], levels[level][range.end - (1 << level)]);
}

Source UnitTable::weakest(const SourceCounts& counts, const UnitRange& range) {
  const std::array<int, 2>& begin = counts[range.begin];
  const std::array<int, 2>& end = counts[range.end];
  if (end[1] > begin[1]) return Source::analytic;
  return end[0] > begin[0] ? Source::interpolated : Source::measured;
}

Bytes UnitTable::working_set(const UnitRange& range, Recompute recompute) const {
  PLAIT_CHECK(range.begin < range.end);
  if (recompute == Recompute::none) return {};
  if (!in_ops_ || recompute == Recompute::selective)
    return most(working_set_[static_cast<int>(recompute)], range);
  const std::vector<UnitCost>& all = prefix_[static_cast<int>(Recompute::none)];
  Bytes largest;
  for (int u = range.begin; u < range.end; u = next_layer_[u])
    largest = std::max(largest, all[std::min(next_layer_[u], range.end)].saved - all[u].saved);
  return largest;
}

}  // namespace plait
