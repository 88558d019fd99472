#include <numeric>

#include "cost/layer/layer_cost.h"

namespace plait {
namespace {

using Amounts = std::vector<double>;  // by unit

double sum_of(const Amounts& amounts) {
  return std::accumulate(amounts.begin(), amounts.end(), 0.0);
}

// A whole in proportion to the first of the weights that are not all 0; else in equal parts.
Amounts divided(double whole, std::initializer_list<const Amounts*> weights) {
  for (const Amounts* weight : weights)
    if (const double sum = sum_of(*weight); sum > 0) {
      Amounts parts = *weight;
      for (double& part : parts) part *= whole / sum;
      return parts;
    }
  const std::size_t units = (*weights.begin())->size();
  return Amounts(units, whole / static_cast<double>(units));
}

template <typename Part>
Amounts amounts(const std::vector<LayerCost>& units, const Part& part) {
  Amounts out;
  out.reserve(units.size());
  for (const LayerCost& unit : units) out.push_back(part(unit));
  return out;
}

// All of the quantities of one way of recompute.
void share_choice(const UnitCost& whole, int r, std::vector<LayerCost>& units) {
  const auto of = [&](auto member) {
    return amounts(units,
                   [&](const LayerCost& unit) { return (unit.by_recompute[r].*member).value; });
  };
  const auto set = [&](auto member, const Amounts& parts) {
    for (std::size_t u = 0; u < units.size(); ++u)
      (units[u].by_recompute[r].*member).value = parts[u];
  };
  const Amounts time = of(&UnitCost::forward);
  const Amounts saved = of(&UnitCost::saved);
  const Amounts parameters = amounts(units, [&](const LayerCost& unit) {
    return unit.by_recompute[r].parameters + unit.by_recompute[r].expert_parameters;
  });
  for (const auto member : {&UnitCost::forward, &UnitCost::backward, &UnitCost::weight_gradient,
                            &UnitCost::recompute, &UnitCost::forward_comm, &UnitCost::backward_comm,
                            &UnitCost::network_forward, &UnitCost::network_backward}) {
    const Amounts own = of(member);
    set(member, divided((whole.*member).value, {&own, &time}));
  }
  set(&UnitCost::optimizer, divided(whole.optimizer.value, {&parameters}));
  set(&UnitCost::held, divided(whole.held.value, {&saved}));
  set(&UnitCost::saved, divided(whole.saved.value, {&saved}));
  const Amounts updated = divided(whole.optimizer_parameters, {&parameters});
  for (std::size_t u = 0; u < units.size(); ++u)
    units[u].by_recompute[r].optimizer_parameters = updated[u];
}

void share_bytes(Bytes whole, std::vector<LayerCost>& units, auto&& part) {
  const Amounts own = amounts(units, [&](LayerCost unit) { return part(unit).value; });
  const Amounts parts = divided(whole.value, {&own});
  for (std::size_t u = 0; u < units.size(); ++u) part(units[u]) = Bytes(parts[u]);
}

}  // namespace

std::vector<LayerCost> shares_of(const LayerCost& layer, std::vector<LayerCost> units) {
  constexpr int kFull = static_cast<int>(Recompute::full);
  for (int r = 0; r < 3; ++r) {
    share_choice(layer.by_recompute[r], r, units);
    share_bytes(layer.repeated[r], units,
                [r](LayerCost& unit) -> Bytes& { return unit.repeated[r]; });
  }
  share_bytes(layer.extent.loss, units, [](LayerCost& unit) -> Bytes& { return unit.extent.loss; });
  share_bytes(layer.extent.kept_loss, units,
              [](LayerCost& unit) -> Bytes& { return unit.extent.kept_loss; });
  for (LayerCost& unit : units) {
    unit.workspace = layer.workspace;
    if (layer.origin.time == Source::measured || layer.origin.memory != Source::analytic) {
      unit.origin = layer.origin;
      unit.origin.time = std::max(unit.origin.time, Source::interpolated);
      unit.origin.memory = std::max(unit.origin.memory, Source::interpolated);
    }
    // What recompute keeps is the input of the layer.
    if (!layer.is_table) unit.by_recompute[kFull].saved = Bytes(0);
  }
  if (!layer.is_table) units.front().by_recompute[kFull].saved = layer.by_recompute[kFull].saved;
  return units;
}

}  // namespace plait
