#include "search/uniform/division/interleaved_stage.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "model/layers.h"

namespace plait {
namespace {

double sync_of(const SpanFrame& frame, const SpanFrame::FinishRates::Way& way, int unit) {
  const UnitCost cost = frame.time_on(0, {unit, unit + 1}, Recompute::none);
  return (cost.trained * way.of_parameter + cost.trained_experts * way.of_expert_parameter).value;
}

// Sums over the units of a stage, by layer and of its ends.
class StageSums {
 public:
  StageSums(const RunCosts& runs, const LayersByKind& layers, const StagePlace& place)
      : layers_(layers), mean_layers_(place.mean_layers) {
    if (place.first) ends_.push_back(0);
    if (place.last) ends_.push_back(runs.unit_count() - 1);
  }

  double least(const auto& of) const {
    double value = HUGE_VAL;
    for (std::size_t k = 0; k < layers_.units.size(); ++k)
      value = std::min(value, of(layers_.units[k]) / layers_.worth[k]);
    return value;
  }
  double of_ends(const auto& of) const {
    double sum = 0;
    for (const int u : ends_) sum += of(u);
    return sum;
  }
  double mean(const auto& of) const { return mean_layers_ * least(of) + of_ends(of); }

 private:
  const LayersByKind& layers_;
  double mean_layers_;
  std::vector<int> ends_;
};

void add_finish(const RunCosts& runs, const LayersByKind& layers, const StageSums& sums,
                InterleavedStage& out) {
  const SpanFrame& frame = runs.frame();
  const std::optional<SpanFrame::FinishRates> rates = frame.finish_rates();
  if (!rates) return;
  const auto gradients = [&](int u) { return sync_of(frame, rates->gradients, u); };
  const auto weights = [&](int u) { return sync_of(frame, rates->weights, u); };
  const auto both = [&](int u) { return gradients(u) + weights(u); };
  const auto forward = [&](int u) { return runs.alone({u, u + 1}).forward.value; };
  const auto backward = [&](int u) { return runs.alone({u, u + 1}).backward.value; };
  const auto passes = [&](int u) { return forward(u) + backward(u); };
  const auto add = [&](const auto& comm, const auto& beside) {
    const auto open = [&](int u) { return comm(u) - (1 - rates->price) * beside(u); };
    const auto part = [&](int u) { return rates->price * comm(u); };
    const bool is_open = sums.mean(open) > sums.mean(part);
    out.finish += is_open ? sums.least(open) : sums.least(part);
    out.finish_of_ends += is_open ? sums.of_ends(open) : sums.of_ends(part);
  };
  out.finish = sums.least([&](int u) { return frame.optimizer({u, u + 1}).value; });
  // Of several replicas the slowest counts; what it takes forward and backward is not known apart.
  if (frame.replica_count() == 1) {
    add(gradients, backward);
    add(weights, forward);
  } else {
    add(both, passes);
  }
  const UnitRange layer{layers.units.front(), layers.units.front() + 1};
  const Seconds sync = frame.whole_gradient_sync(layer);
  const double share = sync > Seconds(0) ? frame.sync_network(layer) / sync : 0;
  out.wire = share * sums.least(both);
  out.wire_of_ends = share * sums.of_ends(both);
}

bool fits(const SpanFrame& frame, const Space& space, const UnitRange& units, Recompute recompute,
          double live) {
  const double tied = space.tied_copies().of(units);
  for (int r = 0; r < frame.replica_count(); ++r)
    if (frame.memory(r, units, recompute, tied).spare(live) < Bytes(0)) return false;
  return true;
}

int most_of_any_kind(const SpanFrame& frame, const LayersByKind& layers, Recompute recompute,
                     double live) {
  int most = layers.count;
  for (int r = 0; r < frame.replica_count(); ++r) {
    std::vector<std::pair<double, int>> kinds;  // bytes of a layer, how many there are
    double left = 0;
    for (std::size_t k = 0; k < layers.units.size(); ++k) {
      const UnitRange unit{layers.units[k], layers.units[k] + 1};
      const SpanFrame::Memory own = frame.memory(r, unit, recompute, 0);
      Bytes kept = own.weights + own.optimizer_state + live * own.saved;
      if (own.keeps_gradients) kept += own.gradients;
      kinds.emplace_back(kept.value, layers.counts[k]);
      left = std::max(0.0, (own.capacity - own.reserve - own.fixed).value);
    }
    std::ranges::sort(kinds);
    int count = 0;
    for (const auto& [bytes, there_are] : kinds) {
      const double room = bytes > 0 ? left / bytes : there_are;
      const int taken = room >= there_are ? there_are : static_cast<int>(room);
      count += taken;
      left -= taken * bytes;
    }
    most = std::min(most, count);
  }
  return most;
}

}  // namespace

std::optional<LayersByKind> layers_by_kind(const Model& model) {
  const int units = model.unit_count();
  if (units < 4 || is_layer(model.unit(0)) || is_layer(model.unit(units - 1))) return std::nullopt;
  LayersByKind out;
  out.cut_after.push_back(0);
  std::map<int, std::size_t> kinds;  // with positions in out.units
  for (int u = 1; u + 1 < units; ++u) {
    const bool layer = is_layer(model.unit(u));
    if (!model.unit(u).starts_layer || (layer && !begins_layer(model.unit(u)))) return std::nullopt;
    const auto [at, is_new] = kinds.try_emplace(model.units[u], out.units.size());
    if (is_new) out.cut_after.push_back(u);
    if (!layer) continue;
    if (is_new) {
      out.units.push_back(u);
      out.counts.push_back(0);
      out.worth.push_back(1);
    }
    ++out.counts[at->second];
    ++out.count;
  }
  if (out.units.empty()) return std::nullopt;
  out.equal = out.units.size() == 1 && out.count + 2 == units;
  return out;
}

InterleavedStage least_stage(const RunCosts& runs, const LayersByKind& layers,
                             const StagePlace& place) {
  const StageSums sums(runs, layers, place);
  const auto total = [&](int u) { return runs.alone({u, u + 1}).total().value; };
  InterleavedStage out;
  out.layer = sums.least(total);
  out.ends = sums.of_ends(total);
  out.finish = sums.least([&](int u) { return runs.alone({u, u + 1}).finish.value; });
  add_finish(runs, layers, sums, out);
  return out;
}

int most_layers(const SpanFrame& frame, const Space& space, const LayersByKind& layers,
                Recompute recompute, const StagePlace& place) {
  if (!layers.equal) return most_of_any_kind(frame, layers, recompute, place.live);
  const int units = space.problem().model.unit_count();
  int good = 0;
  int bad = units - 1;
  while (bad - good > 1) {
    const int middle = (good + bad) / 2;
    const bool all = place.first && place.last && middle == layers.count;
    const UnitRange run = all           ? UnitRange{0, units}
                          : place.last  ? UnitRange{units - 1 - middle, units}
                          : place.first ? UnitRange{0, middle + 1}
                                        : UnitRange{1, middle + 1};
    (fits(frame, space, run, recompute, place.live) ? good : bad) = middle;
  }
  return good;
}

}  // namespace plait
