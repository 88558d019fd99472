#include "search/uniform/layouts/network_bound.h"

#include <algorithm>
#include <cmath>
#include <numeric>
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

bool NetworkBound::has_whole_stages(const UniformLayout& layout, const NodeMix& mix) const {
  for (std::size_t k = 0; k < kinds_.size(); ++k)
    if (mix[k] > 0 && kinds_[k].devices() % layout.stage_devices() != 0) return false;
  return std::accumulate(mix.begin(), mix.end(), 0) > 1;
}

NetworkBound::Busy NetworkBound::of(const UniformLayout& layout, const NodeMix& mix) {
  const int replica = layout.tensor * layout.settings.context;
  const int size = layout.stage_devices();
  int nodes = 0;
  int smallest = size;
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    if (mix[k] == 0) continue;
    nodes += mix[k];
    smallest = std::min(smallest, kinds_[k].devices());
    if (kinds_[k].devices() % replica != 0) return {};
  }
  if (layout.stages == 1 || nodes < 2 || cuts_.empty() || !problem_.profile.collectives.empty())
    return {};
  const auto at_ends = [&](int devices) { return 2 * ((size + devices - 1) / devices); };
  Seconds least(HUGE_VAL);
  Seconds most;
  Seconds longest;  // side
  for (int k = 0; k < static_cast<int>(kinds_.size()); ++k) {
    if (mix[k] == 0) continue;
    const int own = kinds_[k].devices();
    const Seconds side = std::min(own, size) * of_a_device(layout, k, mix);
    least = std::min(least, side);
    longest = std::max(longest, side);
    most = std::max(most, mix[k] > at_ends(own) ? 2 * side : side);
  }
  if (nodes > at_ends(smallest)) most = std::max(most, 2 * least);
  const bool waits = layout.schedule == Schedule::one_f_one_b || layout.schedule == Schedule::gpipe;
  const double m = layout.settings.micro_batches;
  return {m * layout.chunks * most,
          waits && has_whole_stages(layout, mix) ? m * longest : Seconds(0)};
}

// Some device of the first host is paired with one of another host: either the host has no part of
// the last stage, or it has all of the first one, and the last stage ends on another host. The
// devices of the first stage on it share its network.
Seconds NetworkBound::tied(const UniformLayout& layout, const NodeMix& mix) const {
  // A V has both ends of the model on one stage.
  const bool apart = layout.stages > 1 && layout.schedule != Schedule::zb_v;
  if (!apart || problem_.model.ties.empty() || std::accumulate(mix.begin(), mix.end(), 0) < 2)
    return Seconds(0);
  Seconds least(HUGE_VAL);
  for (int first = 0; first < static_cast<int>(kinds_.size()); ++first)
    for (int other = 0; other < static_cast<int>(kinds_.size()); ++other)
      if (mix[first] > 0 && mix[other] > (first == other ? 1 : 0))
        least = std::min(least, tied_on(layout, first, other));
  return least;
}

// Devices of a node may be of several types: some pair takes least.
Seconds NetworkBound::tied_on(const UniformLayout& layout, int first, int other) const {
  std::vector<DeviceId> senders = kinds_[first].on_node.front();
  senders.resize(std::min(senders.size(), static_cast<std::size_t>(layout.stage_devices())));
  const std::vector<DeviceId>& others = kinds_[other].on_node[first == other ? 1 : 0];
  Seconds least(HUGE_VAL);
  std::set<std::pair<int, int>> seen;  // types
  for (std::size_t a = 0; a < senders.size(); ++a)
    for (std::size_t b = 0; b < others.size(); ++b) {
      if (!seen.insert({kinds_[first].types[a], kinds_[other].types[b]}).second) continue;
      std::vector<DeviceId> from = senders;
      std::swap(from.front(), from[a]);
      Seconds sum;
      for (const Tie& tie : problem_.model.ties)
        if (tie.first == 0 && tie.second == problem_.model.unit_count() - 1)
          sum += tied_sync_time(problem_, tie, from, {&others[b], 1}, layout.tensor);
      least = std::min(least, sum);
    }
  return least;
}

// To the neighbour that takes it fastest, as hand_over() has it (cost/stage_cost.h).
Seconds NetworkBound::of_a_device(const UniformLayout& layout, int kind, const NodeMix& mix) {
  const Cluster& cluster = problem_.cluster;
  double rate = 0;
  for (int to = 0; to < static_cast<int>(kinds_.size()); ++to) {
    if (mix[to] <= (to == kind ? 1 : 0)) continue;
    const DeviceId a = kinds_[kind].on_node[0].front();
    const DeviceId b = kinds_[to].on_node[to == kind ? 1 : 0].front();
    // Devices of a node may be of several types.
    double reached = 0;
    for (const int type : kinds_[kind].types)
      reached = std::max(reached, cluster.device_types[type].efficiency.inter);
    rate = std::max(rate, link_between(cluster, a, b).bandwidth.value * reached);
  }
  double output = HUGE_VAL;
  for (const int unit : cuts_) output = std::min(output, problem_.model.unit(unit - 1).output);
  const PlanSettings& settings = layout.settings;
  const double samples =
      1.0 * problem_.job.global_batch / settings.micro_batches / layout.data / settings.context;
  const bool cut = settings.sequence_parallel || problem_.job.framework.traits.scatters_sends;
  const double bytes =
      activation_bytes(problem_.job.precision) * output * samples / (cut ? layout.tensor : 1.0);
  return rate > 0 ? Seconds(bytes / rate) : Seconds(0);
}

}  // namespace plait
