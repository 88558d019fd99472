#include "cost/layer/measured.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "base/error.h"
#include "cost/layer/measured_points.h"

namespace plait {
namespace {

// An op of which only the name, the parameters and how it is cut are known.
bool has_no_shape(const Op& op) {
  Op bare;
  bare.name = op.name;
  bare.kind = op.kind;
  bare.split = op.split;
  bare.parameters = op.parameters;
  bare.cuts = op.cuts;
  return op == bare;
}

// Parts of an analytic cost that measured fields correspond to.
struct Parts {
  bool inside = false;  // communication counts

  double forward(const UnitCost& c) const { return (inside ? c.forward_total() : c.forward).value; }
  double backward(const UnitCost& c) const {
    return (c.backward + c.weight_gradient + (inside ? c.backward_comm : Seconds(0))).value;
  }
};

constexpr int kNone = static_cast<int>(Recompute::none);
constexpr int kSelective = static_cast<int>(Recompute::selective);
constexpr int kFull = static_cast<int>(Recompute::full);

// Puts measured times in the place of the analytic ones.
void set_times(UnitCosts& costs, double forward, double backward, const Parts& parts) {
  const UnitCost plain = costs[kNone];
  const double inner = (plain.backward + plain.weight_gradient).value;
  const double weights = inner > 0 ? plain.weight_gradient.value / inner : 0;
  const double analytic_forward = parts.forward(plain);
  const double again =
      analytic_forward > 0 ? costs[kSelective].recompute.value / analytic_forward : 0;
  for (int r = 0; r < 3; ++r) {
    UnitCost& cost = costs[r];
    cost.forward = Seconds(forward);
    cost.backward = Seconds(backward * (1 - weights));
    cost.weight_gradient = Seconds(backward * weights);
    if (parts.inside) {
      cost.forward_comm = Seconds(0);
      cost.backward_comm = Seconds(0);
    }
  }
  costs[kSelective].recompute = Seconds(forward * std::min(1.0, again));
  costs[kFull].recompute = Seconds(forward);
}

void set_saved(UnitCosts& costs, Bytes saved) {
  const Bytes plain = costs[kNone].saved;
  const double selective = plain > Bytes(0) ? costs[kSelective].saved / plain : 1;
  costs[kNone].saved = saved;
  costs[kSelective].saved = saved * std::min(1.0, selective);
  costs[kFull].saved = std::min(saved, costs[kFull].saved);
}

Source source_of(const MeasuredPoints& reader, const Series& series, double b) {
  return reader.same_degrees() && series.has(b) ? Source::measured : Source::interpolated;
}

// `late`: how much longer it takes than measured.
void take_times(const MeasuredPoints& reader, double b, double late, MeasuredCost& out) {
  const Parts parts{reader.inside()};
  const UnitCost plain = out.costs[kNone];
  const auto forward_of = [&](const UnitCosts& c) { return parts.forward(c[kNone]); };
  const auto backward_of = [&](const UnitCosts& c) { return parts.backward(c[kNone]); };
  const auto both_of = [&](const UnitCosts& c) { return forward_of(c) + backward_of(c); };
  const Series forward = reader.series<&ComputeSample::forward>();
  const Series backward = reader.series<&ComputeSample::backward>();
  const Series both = reader.series<&ComputeSample::both>();
  const Series& main = forward.empty() ? both : forward;
  if (main.empty()) return;
  double f = 0;
  double back = 0;
  const double analytic_forward = parts.forward(plain);
  const double analytic_backward = parts.backward(plain);
  if (forward.empty()) {
    const double sum = reader.value(both, both_of);
    const double analytic_sum = analytic_forward + analytic_backward;
    // Without an analytic model: backward has two products for each one of forward.
    f = analytic_sum > 0 ? sum * analytic_forward / analytic_sum : sum / 3;
    back = sum - f;
  } else {
    f = reader.value(forward, forward_of);
    if (!backward.empty())
      back = reader.value(backward, backward_of);
    else
      back = analytic_forward > 0 ? f * analytic_backward / analytic_forward : 2 * f;
  }
  set_times(out.costs, late * f, late * back, parts);
  const auto [low, high] = main.around(b);
  out.origin.time = source_of(reader, main, b);
  if (!forward.empty() && backward.empty()) out.origin.time = Source::interpolated;
  out.origin.tensor = reader.tensor();
  out.origin.sequence = reader.sequence();
  out.origin.micro_batch_low = static_cast<int>(low.x);
  out.origin.micro_batch_high = static_cast<int>(high.x);
  out.origin.communication_inside = reader.inside();
}

void take_memory(const MeasuredPoints& reader, double b, double state_bytes, MeasuredCost& out) {
  const auto saved_of = [](const UnitCosts& c) { return c[kNone].saved.value; };
  const Series saved = reader.series<&ComputeSample::saved_activations>();
  const Series memory = reader.series<&ComputeSample::memory>();
  if (!saved.empty()) {
    set_saved(out.costs, Bytes(reader.value(saved, saved_of)));
    out.origin.memory = source_of(reader, saved, b);
    out.saved_all = true;
    if (const Series input = reader.series<&ComputeSample::input>(); !input.empty())
      out.input = Bytes(reader.value(input, saved_of));
    if (const Series most = reader.series<&ComputeSample::workspace>(); !most.empty())
      out.workspace = Bytes(reader.value(most, saved_of));
    return;
  }
  if (memory.empty()) return;
  // The growth with the micro-batch is what is saved for it; the rest are states.
  if (const double growth = memory.slope(); growth > 0) {
    const std::vector<Point> line{{1, growth}, {2, 2 * growth}};
    set_saved(out.costs, Bytes(reader.value(Series(line), saved_of)));
  }
  const auto memory_of = [&](const UnitCosts& c) {
    const UnitCost& plain = c[kNone];
    return plain.saved.value + state_bytes * (plain.parameters + plain.expert_parameters);
  };
  const UnitCost& plain = out.costs[kNone];
  const double known =
      plain.saved.value + state_bytes * (plain.parameters + plain.expert_parameters);
  const Bytes held(std::max(0.0, reader.value(memory, memory_of) - known));
  for (UnitCost& cost : out.costs) cost.held = held;
  out.origin.memory = Source::interpolated;
}

}  // namespace

bool is_only_measured(const LayerKind& unit) {
  return !unit.ops.empty() && std::ranges::all_of(unit.ops, has_no_shape);
}

double slowest_of(int devices) {
  PLAIT_CHECK(devices >= 1);
  const double share = (devices - 0.375) / (devices + 0.25);
  double low = 0;
  double high = 8;
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(-middle / std::numbers::sqrt2) / 2 < share ? low : high) = middle;
  }
  return low;
}

LayerKind at_sequence_ratio(LayerKind kind, double ratio) {
  for (Op& op : kind.ops) {
    const bool attention = op.kind == OpKind::attention;
    op.rows *= ratio;
    if (attention) op.columns *= ratio;
    op.forward = op.forward * (attention ? ratio * ratio : ratio);
    for (double* size : {&op.moved, &op.saved, &op.forward_reduce, &op.backward_reduce,
                         &op.expert_exchange, &op.boundary})
      *size *= ratio;
    op.saved_mask = op.saved_mask * ratio;
  }
  kind.output *= ratio;
  return kind;
}

namespace {

// How many times as long a unit takes because the host is late. The host waits for the device at
// the end of a step only: what it is ahead in one unit makes up for being late in another, so that
// all units wait as long as all of them together do.
double waiting_for_host(const MeasuredPlace& place, const MeasuredPoints& own,
                        const AnalyticCost& analytic) {
  MeasuredPasses all = own.passes();
  if (all.launch <= Seconds(0)) return 1;
  const std::vector<LayerKind>& kinds = place.model.kinds;
  const auto is_own = [&](const LayerKind& kind) { return kind.name == place.kind.name; };
  if (std::ranges::any_of(kinds, is_own)) {
    all = {};
    for (int k = 0; k < static_cast<int>(kinds.size()); ++k) {
      const MeasuredPlace there{.profile = place.profile,
                                .model = place.model,
                                .device_type = place.device_type,
                                .kind = kinds[k],
                                .usual = kinds[k],
                                .sharding = place.sharding};
      const MeasuredPoints reader(there, analytic);
      if (reader.empty()) continue;
      const MeasuredPasses one = reader.passes();
      if (one.launch <= Seconds(0)) continue;
      const auto count = static_cast<double>(std::ranges::count(place.model.units, k));
      all.device += count * one.device;
      all.launch += count * one.launch;
    }
  }
  return all.launch > all.device ? all.launch / all.device : 1;
}

}  // namespace

std::optional<MeasuredCost> measured_cost(const MeasuredPlace& place,
                                          const AnalyticCost& analytic) {
  const MeasuredPoints reader(place, analytic);
  if (reader.empty()) return std::nullopt;
  MeasuredCost out{.costs = analytic(place.kind, place.sharding), .origin = {}};
  const double b = place.sharding.samples;
  const double spread = reader.spread();
  const double late = spread > 0 ? 1 + spread * slowest_of(place.devices) : 1;
  take_times(reader, b, late * waiting_for_host(place, reader, analytic), out);
  take_memory(reader, b, place.state_bytes, out);
  const auto optimizer_of = [](const UnitCosts& c) {
    return c[kNone].parameters + c[kNone].expert_parameters;
  };
  if (const Series optimizer = reader.series<&ComputeSample::optimizer>(); !optimizer.empty())
    for (UnitCost& cost : out.costs) {
      cost.optimizer = Seconds(late * reader.value(optimizer, optimizer_of));
      cost.optimizer_parameters = cost.parameters + cost.expert_parameters;
    }
  return out;
}

}  // namespace plait
