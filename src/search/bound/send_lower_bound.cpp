#include "search/bound/send_lower_bound.h"

#include <algorithm>
#include <cmath>

#include "cost/framework/framework.h"

namespace plait {

SendLowerBound::SendLowerBound(const Space& space, const PlanSettings& settings)
    : space_(space), settings_(settings) {
  const Problem& problem = space.problem();
  const Cluster& cluster = problem.cluster;
  const FrameworkTraits& traits = problem.job.framework.traits;
  cuts_sends_ = traits.scatters_sends;
  known_ = problem.profile.collectives.empty() && !traits.send_blocks &&
           !space.pools_share_nodes() && settings.context == 1;
  if (!known_) return;

  const int count = static_cast<int>(space.pools().size());
  const auto type = [&](int p) -> const DeviceType& {
    return cluster.device_types[space.pools()[p].type];
  };
  for (int p = 0; p < count; ++p) {
    all_pools_.push_back(p);
    const Pool& pool = space.pools()[p];
    const Node& node = cluster.node_of(pool.devices.front());
    inside_.push_back({node.intra.bandwidth * type(p).efficiency.intra, node.intra.latency});
    links_.emplace_back();
    for (int q = 0; q < count; ++q) {
      const int other = cluster.device(space.pools()[q].devices.front()).node;
      Link link = node.uplink;
      if (p != q)
        link = link_between_nodes(cluster, cluster.device(pool.devices.front()).node, other);
      const double reached = std::min(type(p).efficiency.inter, type(q).efficiency.inter);
      links_.back().push_back({link.bandwidth * reached, link.latency});
    }
  }
  least_bytes_ = Bytes(HUGE_VAL);
  for (int u = 1; u < problem.model.unit_count(); ++u)
    least_bytes_ = std::min(least_bytes_, bytes_at(u));
}

Bytes SendLowerBound::bytes_at(int unit) const {
  const Problem& problem = space_.problem();
  const double samples =
      static_cast<double>(problem.job.global_batch) / settings_.micro_batches / settings_.context;
  return Bytes(activation_bytes(problem.job.precision) * problem.model.unit(unit - 1).output *
               samples);
}

SendLowerBound::Traffic SendLowerBound::traffic_of(const StageOption& option) const {
  const double replica = 1.0 / option.data;
  const double cut = replica / option.tensor;
  const bool always = settings_.sequence_parallel;
  return {always || cuts_sends_ ? cut : replica, always ? cut : replica};
}

Seconds SendLowerBound::of_take(const StageOption& option, const Take& take, Bytes bytes,
                                const std::vector<int>& partners, int least_partner) const {
  const Traffic traffic = traffic_of(option);
  const int per_node = space_.pools()[take.pool].per_node;
  const int n = take.devices;
  const int step = std::min(option.tensor, per_node);
  const bool own_node = n >= (step == per_node ? per_node : 2 * per_node - step);
  const int nodes = (n + per_node - 2) / per_node + 1;  // that n devices touch at most
  const int spread = own_node ? per_node : (n + nodes - 1) / nodes;
  const int left_behind = own_node ? per_node : std::max(step, n - per_node + 1);
  // A neighbour of several pools may take what is on the fullest node inside it.
  const int away = partners.size() > 1 && n >= per_node ? std::min(spread, left_behind) : spread;
  Seconds least(HUGE_VAL);
  for (const int q : partners) {
    const Link& link = links_[take.pool][q];
    const double sharing = q == take.pool ? left_behind : std::max(step, away);
    least = std::min(least, link.latency + bytes * traffic.crossing * sharing / link.bandwidth);
    if (q != take.pool || n + least_partner > per_node) continue;
    const Link& inside = inside_[take.pool];
    least = std::min(least, inside.latency + bytes * traffic.inside / inside.bandwidth);
  }
  return least;
}

Seconds SendLowerBound::between(const StageOption& from, const StageOption& to, int unit) const {
  if (!known_) return {};
  const Bytes bytes = bytes_at(unit);
  Seconds slowest;
  const auto add = [&](const StageOption& own, const StageOption& other) {
    std::vector<int> partners;
    for (const Take& take : other.takes) partners.push_back(take.pool);
    const bool single = own.takes.size() == 1 && other.takes.size() == 1;
    const int least_partner = single ? other.takes.front().devices : 1;
    for (const Take& take : own.takes)
      slowest = std::max(slowest, of_take(own, take, bytes, partners, least_partner));
  };
  add(from, to);
  add(to, from);
  return slowest;
}

Seconds SendLowerBound::beside(const StageOption& option) const {
  if (!known_ || !std::isfinite(least_bytes_.value)) return {};
  Seconds slowest;
  for (const Take& take : option.takes)
    slowest = std::max(slowest, of_take(option, take, least_bytes_, all_pools_, 1));
  return slowest;
}

}  // namespace plait
