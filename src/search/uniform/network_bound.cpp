#include "search/uniform/network_bound.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "cost/stage_cost.h"

namespace plait {

NetworkBound::NetworkBound(const Problem& problem, const std::vector<NodeKind>& kinds)
    : problem_(problem), kinds_(kinds) {
  std::set<int> seen;  // kinds of the units before a cut: what is handed over is theirs
  for (int u = 1; u < problem.model.unit_count(); ++u)
    if (problem.model.unit(u).starts_layer && seen.insert(problem.model.units[u - 1]).second)
      cuts_.push_back(u);
}

Seconds NetworkBound::of(const UniformLayout& layout, const NodeMix& mix) {
  const int size = layout.stage_devices();
  int nodes = 0;
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    nodes += mix[k];
    if (mix[k] > 0 && kinds_[k].devices() % size != 0) return Seconds(0);
  }
  if (nodes < 2 || cuts_.empty()) return Seconds(0);
  Seconds least(HUGE_VAL);
  for (int from = 0; from < static_cast<int>(kinds_.size()); ++from)
    for (int to = 0; to < static_cast<int>(kinds_.size()); ++to)
      if (mix[from] > 0 && mix[to] > (from == to ? 1 : 0))
        least = std::min(least, between(layout, from, to));
  const double ways = layout.settings.micro_batches * layout.chunks * (nodes > 2 ? 2.0 : 1.0);
  return ways * least;
}

Seconds NetworkBound::between(const UniformLayout& layout, int from, int to) {
  const PlanSettings& settings = layout.settings;
  const auto [at, is_new] =
      known_.try_emplace({layout.tensor, layout.data, settings.context, settings.micro_batches,
                          settings.sequence_parallel, from, to});
  if (!is_new) return at->second;
  const Plan plan = plan_under(settings, layout.schedule);
  const auto stage_on = [&](int kind, int node) {
    Stage stage;
    const std::vector<DeviceId>& devices = kinds_[kind].on_node[node];
    stage.devices.assign(devices.begin(), devices.begin() + layout.stage_devices());
    stage.spans.push_back({.tensor = layout.tensor, .data = layout.data});
    return stage;
  };
  const Stage sender = stage_on(from, 0);
  const Stage receiver = stage_on(to, from == to ? 1 : 0);
  Seconds least(HUGE_VAL);
  for (const int unit : cuts_)
    least = std::min(least, hand_over(problem_, plan, sender, receiver, unit).busy);
  return at->second = least;
}

}  // namespace plait
