#include "cost/layer/measured.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "base/error.h"
#include "cost/comm/series.h"
#include "model/fingerprint.h"

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

// Position of the degree that is nearest to `wanted`, by ratio; the smaller one of two equals.
int nearest(const std::vector<int>& degrees, int wanted) {
  const auto distance = [&](int degree) {
    return std::abs(std::log(static_cast<double>(degree) / wanted));
  };
  return *std::ranges::min_element(degrees, {}, distance);
}

using Field = std::optional<double> (*)(const ComputeSample&);

template <auto Member>
std::optional<double> field(const ComputeSample& sample) {
  const auto& value = sample.*Member;
  return value ? std::optional<double>(value->value) : std::nullopt;
}

// Both passes of a unit.
struct Passes {
  Seconds device;
  Seconds launch;  // by the host; 0 where it is not known
};

Passes passes_of(const ComputeSample& sample) {
  const auto sum = [](std::optional<Seconds> a, std::optional<Seconds> b) {
    return a.value_or(Seconds(0)) + b.value_or(Seconds(0));
  };
  return {sum(sample.forward, sample.backward), sum(sample.forward_launch, sample.backward_launch)};
}

// All that was measured of one kind on one device type, read for one sharding.
class Reader {
 public:
  Reader(const MeasuredPlace& place, const AnalyticCost& analytic)
      : model_(place.model),
        kind_(place.kind),
        measured_(&place.kind),
        sharding_(place.sharding),
        analytic_(analytic) {
    std::vector<const Entry*> entries = entries_of(place, place.split);
    if (entries.empty() && place.split != 0) {
      entries = entries_of(place, 0);
      measured_ = &place.usual;
    }
    if (entries.empty()) return;
    std::vector<int> tensors;
    for (const Entry* entry : entries) tensors.push_back(entry->first.tensor);
    tensor_ = nearest(tensors, sharding_.tensor);
    std::erase_if(entries, [&](const Entry* entry) { return entry->first.tensor != tensor_; });
    std::vector<int> sequences;
    for (const Entry* entry : entries) sequences.push_back(tokens(entry->first));
    sequence_ = nearest(sequences, std::max(1, model_.sequence_length));
    for (const Entry* entry : entries)
      if (tokens(entry->first) == sequence_)
        samples_.emplace_back(entry->first.micro_batch, entry->second);
    inside_ = samples_.front().second.communication_inside;
  }

  bool empty() const { return samples_.empty(); }
  bool inside() const { return inside_; }
  int tensor() const { return tensor_; }
  int sequence() const { return sequence_ == model_.sequence_length ? 0 : sequence_; }

  Series series(Field of) const {
    std::vector<Point> points;
    for (const auto& [micro_batch, sample] : samples_)
      if (const auto value = of(sample))
        points.push_back({.x = static_cast<double>(micro_batch), .value = *value});
    return Series(std::move(points));
  }

  // At the micro-batch that is nearest to the wanted one.
  Passes passes() const {
    const auto distance = [&](const auto& entry) {
      return std::abs(std::log(entry.first / sharding_.samples));
    };
    return passes_of(std::ranges::min_element(samples_, {}, distance)->second);
  }

  // Of the measured times, weighted with them; 0 where none is known.
  double spread() const {
    double sum = 0;
    double weights = 0;
    for (const auto& [micro_batch, sample] : samples_) {
      const double time = sample.forward.value_or(sample.both.value_or(Seconds(0))).value;
      sum += sample.spread.value_or(0) * time;
      weights += time;
    }
    return weights > 0 ? sum / weights : 0;
  }

  // The degrees other than the micro-batch, and the cut, are those of a measurement.
  bool same_degrees() const {
    return measured_ == &kind_ && tensor_ == sharding_.tensor && sequence() == 0 &&
           sharding_.context == 1 && sharding_.expert == 1 &&
           (sharding_.tensor == 1 || !sharding_.sequence_parallel);
  }

  // The value of a series for the sharding; `part` picks the same from an analytic cost.
  template <typename PartOf>
  double value(const Series& series, const PartOf& part) const {
    const double b = sharding_.samples;
    double at = 0;
    if (series.has(b) || series.size() >= 2) {
      at = series.at(b);
    } else {
      const Point& only = series.front();
      // What analytic times have of ops without a shape does not grow with the micro-batch.
      at = is_only_measured(kind_)
               ? series.at(b)
               : only.value * ratio(part(there()), part(measured_conditions(only.x)));
    }
    return same_degrees() ? at : at * ratio(part(here()), part(there()));
  }

 private:
  using Entry = std::pair<const ComputeKey, ComputeSample>;

  static std::vector<const Entry*> entries_of(const MeasuredPlace& place, int split) {
    const ComputeKey first{.unit = place.kind.name,
                           .device_type = place.device_type,
                           .tensor = 0,
                           .micro_batch = 0,
                           .sequence = 0,
                           .split = 0};
    std::vector<const Entry*> entries;
    std::string own;  // fingerprint, made when the first entry wants it
    const auto applies = [&](const Entry& entry) {
      if (entry.first.split != split || entry.second.out_of_memory) return false;
      if (entry.first.shape.empty()) return true;
      if (own.empty()) own = fingerprint(place.model, place.usual);
      return entry.first.shape == own;
    };
    const auto& all = place.profile.compute;
    for (auto it = all.lower_bound(first); it != all.end() && it->first.unit == first.unit &&
                                           it->first.device_type == first.device_type;
         ++it)
      if (applies(*it)) entries.push_back(&*it);
    return entries;
  }

  int tokens(const ComputeKey& key) const {
    return std::max(1, key.sequence == 0 ? model_.sequence_length : key.sequence);
  }

  static double ratio(double a, double b) { return a > 0 && b > 0 ? a / b : 1; }

  // The analytic costs where it was measured, but at micro-batch b.
  UnitCosts measured_conditions(double b) const {
    const Sharding there{.samples = b, .tensor = tensor_};
    if (sequence() == 0) return analytic_(*measured_, there);
    const double longer = static_cast<double>(sequence_) / std::max(1, model_.sequence_length);
    return analytic_(at_sequence_ratio(*measured_, longer), there);
  }

  // At the micro-batch of the sharding.
  const UnitCosts& there() const {
    if (!there_) there_ = measured_conditions(sharding_.samples);
    return *there_;
  }
  // The analytic costs of the sharding itself.
  const UnitCosts& here() const {
    if (!here_) here_ = analytic_(kind_, sharding_);
    return *here_;
  }

  const Model& model_;
  const LayerKind& kind_;
  const LayerKind* measured_;  // the kind, or as it is usually cut
  const Sharding& sharding_;
  const AnalyticCost& analytic_;
  std::vector<std::pair<int, ComputeSample>> samples_;  // by micro-batch
  int tensor_ = 1;
  int sequence_ = 1;
  bool inside_ = false;
  mutable std::optional<UnitCosts> there_;
  mutable std::optional<UnitCosts> here_;
};

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

Source source_of(const Reader& reader, const Series& series, double b) {
  return reader.same_degrees() && series.has(b) ? Source::measured : Source::interpolated;
}

// `late`: how much longer it takes than measured.
void take_times(const Reader& reader, double b, double late, MeasuredCost& out) {
  const Parts parts{reader.inside()};
  const UnitCost plain = out.costs[kNone];
  const auto forward_of = [&](const UnitCosts& c) { return parts.forward(c[kNone]); };
  const auto backward_of = [&](const UnitCosts& c) { return parts.backward(c[kNone]); };
  const auto both_of = [&](const UnitCosts& c) { return forward_of(c) + backward_of(c); };
  const Series forward = reader.series(field<&ComputeSample::forward>);
  const Series backward = reader.series(field<&ComputeSample::backward>);
  const Series both = reader.series(field<&ComputeSample::both>);
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

void take_memory(const Reader& reader, double b, double state_bytes, MeasuredCost& out) {
  const auto saved_of = [](const UnitCosts& c) { return c[kNone].saved.value; };
  const Series saved = reader.series(field<&ComputeSample::saved_activations>);
  const Series memory = reader.series(field<&ComputeSample::memory>);
  if (!saved.empty()) {
    set_saved(out.costs, Bytes(reader.value(saved, saved_of)));
    out.origin.memory = source_of(reader, saved, b);
    out.saved_all = true;
    if (const Series input = reader.series(field<&ComputeSample::input>); !input.empty())
      out.input = Bytes(reader.value(input, saved_of));
    if (const Series most = reader.series(field<&ComputeSample::workspace>); !most.empty())
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
double waiting_for_host(const MeasuredPlace& place, const Reader& own,
                        const AnalyticCost& analytic) {
  Passes all = own.passes();
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
      const Reader reader(there, analytic);
      if (reader.empty()) continue;
      const Passes one = reader.passes();
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
  const Reader reader(place, analytic);
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
  if (const Series optimizer = reader.series(field<&ComputeSample::optimizer>); !optimizer.empty())
    for (UnitCost& cost : out.costs) {
      cost.optimizer = Seconds(late * reader.value(optimizer, optimizer_of));
      cost.optimizer_parameters = cost.parameters + cost.expert_parameters;
    }
  return out;
}

}  // namespace plait
