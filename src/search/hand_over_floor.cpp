#include "search/hand_over_floor.h"

#include <algorithm>
#include <cmath>

#include "cost/framework.h"

namespace plait {

HandOverFloor::HandOverFloor(const Space& space, const PlanSettings& settings)
    : space_(space), settings_(settings) {
  const Problem& problem = space.problem();
  const Cluster& cluster = problem.cluster;
  const FrameworkTraits traits = traits_of(problem.job);
  cuts_sends_ = traits.cuts_sends;
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

Bytes HandOverFloor::bytes_at(int unit) const {
  const Problem& problem = space_.problem();
  const double samples =
      static_cast<double>(problem.job.global_batch) / settings_.micro_batches / settings_.context;
  return Bytes(activation_bytes(problem.job.precision) * problem.model.unit(unit - 1).output *
               samples);
}

HandOverFloor::Traffic HandOverFloor::traffic_of(const StageOption& option) const {
  const double replica = 1.0 / option.data;
  const double cut = replica / option.tensor;
  const bool always = settings_.sequence_parallel;
  return {always || cuts_sends_ ? cut : replica, always ? cut : replica};
}

Seconds HandOverFloor::of_take(const Take& take, const Traffic& traffic, Bytes bytes,
                               const std::vector<int>& partners) const {
  const int per_node = space_.pools()[take.pool].per_node;
  const int n = take.devices;
  const bool own_node = n >= 2 * per_node - 1;
  const int nodes = (n + per_node - 2) / per_node + 1;  // that n devices touch at most
  const int sharing = own_node ? per_node : (n + nodes - 1) / nodes;
  Seconds least(HUGE_VAL);
  for (const int q : partners) {
    const Link& link = links_[take.pool][q];
    const bool may_be_inside = q == take.pool && !own_node;
    const double crossing = may_be_inside ? 1 : sharing;
    least = std::min(least, link.latency + bytes * traffic.crossing * crossing / link.bandwidth);
    if (!may_be_inside) continue;
    const Link& inside = inside_[take.pool];
    least = std::min(least, inside.latency + bytes * traffic.inside / inside.bandwidth);
  }
  return least;
}

Seconds HandOverFloor::between(const StageOption& from, const StageOption& to, int unit) const {
  if (!known_) return {};
  const Bytes bytes = bytes_at(unit);
  const auto pools_of_takes = [](const StageOption& option) {
    std::vector<int> pools;
    for (const Take& take : option.takes) pools.push_back(take.pool);
    return pools;
  };
  Seconds slowest;
  const std::vector<int> senders = pools_of_takes(from);
  const std::vector<int> receivers = pools_of_takes(to);
  for (const Take& take : from.takes)
    slowest = std::max(slowest, of_take(take, traffic_of(from), bytes, receivers));
  for (const Take& take : to.takes)
    slowest = std::max(slowest, of_take(take, traffic_of(to), bytes, senders));
  return slowest;
}

Seconds HandOverFloor::beside(const StageOption& option) const {
  if (!known_ || !std::isfinite(least_bytes_.value)) return {};
  Seconds slowest;
  for (const Take& take : option.takes)
    slowest = std::max(slowest, of_take(take, traffic_of(option), least_bytes_, all_pools_));
  return slowest;
}

}  // namespace plait
