#include "cost/unit_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "cost/framework.h"
#include "cost/measured.h"

namespace plait {
namespace {

// Joins the time that the device needs with the time that the host needs to feed it: the longer of
// the two, with a soft corner where they are close (exponent fitted, docs/cost-model.md#host).
constexpr double kHostCorner = 6;

double joined(double device, double host) {
  if (host <= 0) return device;
  if (device <= 0) return host;
  const double longer = std::max(device, host);
  const double shorter = std::min(device, host);
  return longer * std::pow(1 + std::pow(shorter / longer, kHostCorner), 1 / kHostCorner);
}

Seconds tensor_reduction(const Group& group, bool sequence_parallel, Bytes size) {
  return sequence_parallel ? reduce_scatter(group, size) + all_gather(group, size)
                           : all_reduce(group, size);
}

struct KindCost {
  std::array<UnitCost, 3> by_recompute;
  Bytes all_saved;
  Bytes loss_workspace;
  Origin origin;
};

KindCost kind_cost(const Problem& problem, const ReplicaShape& shape, const LayerKind& kind,
                   double input) {
  const Job& job = problem.job;
  const FrameworkTraits& traits = traits_of(job.framework);
  const DeviceType& device = problem.cluster.device_types[shape.device_type];
  const Sharding& s = shape.sharding;
  const double element = activation_bytes(job.precision);
  const double per_device = s.samples / s.context;

  UnitCost plain;
  Seconds attention;  // forward of the ops that selective recompute repeats
  Seconds attention_comm;
  Bytes selective;
  for (const Op& op : kind.ops) {
    const OpTime time = op_time(job, problem.model, device, op, s);
    plain.forward += time.forward;
    plain.backward += time.backward;
    plain.weight_gradient += time.weight_gradient;
    if (op.kind == OpKind::attention && job.attention == AttentionKernel::plain)
      attention += time.forward;

    const Bytes forward_reduce(element * op.forward_reduce * per_device);
    const Bytes backward_reduce(element * op.backward_reduce * per_device);
    if (s.tensor > 1 && forward_reduce > Bytes(0))
      plain.forward_comm +=
          traits.tensor_exposed *
          tensor_reduction(shape.tensor_group, s.sequence_parallel, forward_reduce);
    if (s.tensor > 1 && backward_reduce > Bytes(0))
      plain.backward_comm +=
          traits.tensor_exposed *
          tensor_reduction(shape.tensor_group, s.sequence_parallel, backward_reduce);
    if (s.expert > 1 && op.expert_exchange > 0) {
      const Seconds exchange =
          2 * all_to_all(shape.expert_group, Bytes(element * op.expert_exchange * per_device / 2));
      plain.forward_comm += exchange;
      plain.backward_comm += exchange;
    }
    if (s.context > 1 && op.kind == OpKind::attention) {
      // Keys and values go round the ring once forward, and with their gradients once backward.
      const Bytes ring(element * 2 * op.columns * op.inner * op.count * s.samples / s.tensor);
      plain.forward_comm += traits.tensor_exposed * all_gather(shape.context_group, ring);
      plain.backward_comm += 2 * traits.tensor_exposed * all_gather(shape.context_group, ring);
    }
    const SavedBytes saved = saved_bytes(job, problem.model, op, s);
    plain.saved += saved.all;
    selective += saved.selective;
    (op.split == Split::experts ? plain.expert_parameters : plain.parameters) +=
        parameters_per_device(op, s);
  }

  KindCost cost;
  cost.all_saved = plain.saved;
  for (const Op& op : kind.ops)
    if (op.kind == OpKind::loss)
      cost.loss_workspace += Bytes(4 * op.rows * op.columns * per_device / s.tensor);
  cost.by_recompute.fill(plain);
  UnitCost& with_selective = cost.by_recompute[static_cast<int>(Recompute::selective)];
  with_selective.recompute = attention;
  with_selective.saved = selective;
  UnitCost& with_full = cost.by_recompute[static_cast<int>(Recompute::full)];
  with_full.recompute = plain.forward;
  with_full.backward_comm += plain.forward_comm;
  const double input_share = s.sequence_parallel ? per_device / s.tensor : per_device;
  with_full.saved = std::min(plain.saved, Bytes(element * input * input_share));

  const double host = traits.host_per_op.value * static_cast<double>(kind.ops.size()) *
                      (s.tensor > 1 ? 1 + traits.host_tensor : 1);
  for (int r = 0; r < 3; ++r) {
    UnitCost& unit = cost.by_recompute[r];
    const double host_time = host * (r == static_cast<int>(Recompute::full) ? 4 : 3);
    const double device_time = unit.total().value;
    if (device_time <= 0) continue;
    const double slow = joined(device_time, host_time) / device_time;
    for (Seconds* part : {&unit.forward, &unit.backward, &unit.weight_gradient, &unit.recompute,
                          &unit.forward_comm, &unit.backward_comm})
      *part = *part * slow;
  }
  return cost;
}

// The same replica with another sharding. Tensor groups of another size are thought inside a node,
// which is where profiles are made.
ReplicaShape resharded(const Problem& problem, const ReplicaShape& shape,
                       const Sharding& sharding) {
  ReplicaShape other = shape;
  other.sharding = sharding;
  if (sharding.tensor == shape.sharding.tensor) return other;
  const DeviceType& device = problem.cluster.device_types[shape.device_type];
  Link intra = shape.tensor_group.intra;
  if (shape.tensor_group.per_node < 2)
    intra = {device.intra.bandwidth * device.efficiency.intra, device.intra.latency};
  other.tensor_group = {.members = sharding.tensor,
                        .nodes = 1,
                        .per_node = sharding.tensor,
                        .intra = intra,
                        .inter = {}};
  return other;
}

// Puts what was measured in the place of what the analytic model says.
void take_measured(const Problem& problem, const ReplicaShape& shape, const LayerKind& kind,
                   double input, KindCost& cost) {
  if (problem.profile.compute.empty()) return;
  const StateBytes state = state_bytes(problem.job);
  const AnalyticCost analytic = [&](const LayerKind& of, const Sharding& sharding) {
    return kind_cost(problem, resharded(problem, shape, sharding), of, input).by_recompute;
  };
  const auto measured = measured_cost(
      problem.profile, problem.model, problem.cluster.device_types[shape.device_type].name, kind,
      shape.sharding, state.weight + state.gradient + state.optimizer, analytic);
  if (!measured) return;
  cost.by_recompute = measured->costs;
  cost.all_saved = measured->costs[static_cast<int>(Recompute::none)].saved;
  cost.origin = measured->origin;
}

}  // namespace

UnitCost& UnitCost::operator+=(const UnitCost& o) {
  forward += o.forward;
  backward += o.backward;
  weight_gradient += o.weight_gradient;
  recompute += o.recompute;
  forward_comm += o.forward_comm;
  backward_comm += o.backward_comm;
  saved += o.saved;
  parameters += o.parameters;
  expert_parameters += o.expert_parameters;
  held += o.held;
  optimizer += o.optimizer;
  optimizer_parameters += o.optimizer_parameters;
  return *this;
}

UnitCost operator-(UnitCost a, const UnitCost& b) {
  a.forward -= b.forward;
  a.backward -= b.backward;
  a.weight_gradient -= b.weight_gradient;
  a.recompute -= b.recompute;
  a.forward_comm -= b.forward_comm;
  a.backward_comm -= b.backward_comm;
  a.saved -= b.saved;
  a.parameters -= b.parameters;
  a.expert_parameters -= b.expert_parameters;
  a.held -= b.held;
  a.optimizer -= b.optimizer;
  a.optimizer_parameters -= b.optimizer_parameters;
  return a;
}

UnitTable::UnitTable(const Problem& problem, const ReplicaShape& shape) {
  const Model& model = problem.model;
  // A kind's input is the output of the unit before it; kinds that follow several others take the
  // largest.
  std::vector<double> input(model.kinds.size(), 0);
  for (int u = 1; u < model.unit_count(); ++u)
    input[model.units[u]] = std::max(input[model.units[u]], model.unit(u - 1).output);
  std::vector<KindCost> kinds;
  for (std::size_t k = 0; k < model.kinds.size(); ++k) {
    kinds.push_back(kind_cost(problem, shape, model.kinds[k], input[k]));
    take_measured(problem, shape, model.kinds[k], input[k], kinds.back());
  }
  time_counts_.emplace_back();
  memory_counts_.emplace_back();
  for (const int kind : model.units) {
    time_counts_.push_back(time_counts_.back());
    memory_counts_.push_back(memory_counts_.back());
    const Origin& origin = kinds[kind].origin;
    if (origin.time != Source::measured) ++time_counts_.back()[static_cast<int>(origin.time) - 1];
    if (origin.memory != Source::measured)
      ++memory_counts_.back()[static_cast<int>(origin.memory) - 1];
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
  loss_prefix_.emplace_back();
  working_set_.emplace_back();
  for (const int kind : model.units) {
    loss_prefix_.push_back(loss_prefix_.back() + kinds[kind].loss_workspace);
    working_set_.front().push_back(kinds[kind].all_saved);
  }
  for (std::size_t width = 2; width <= model.units.size(); width *= 2) {
    const std::vector<Bytes>& half = working_set_.back();
    std::vector<Bytes> level;
    for (std::size_t u = 0; u + width <= model.units.size(); ++u)
      level.push_back(std::max(half[u], half[u + width / 2]));
    working_set_.push_back(std::move(level));
  }
}

Source UnitTable::weakest(const SourceCounts& counts, const UnitRange& range) {
  const std::array<int, 2>& begin = counts[range.begin];
  const std::array<int, 2>& end = counts[range.end];
  if (end[1] > begin[1]) return Source::analytic;
  return end[0] > begin[0] ? Source::interpolated : Source::measured;
}

Bytes UnitTable::largest_working_set(const UnitRange& range) const {
  PLAIT_CHECK(range.begin < range.end);
  const int level = std::bit_width(static_cast<unsigned>(range.size())) - 1;
  return std::max(working_set_[level][range.begin], working_set_[level][range.end - (1 << level)]);
}

}  // namespace plait
