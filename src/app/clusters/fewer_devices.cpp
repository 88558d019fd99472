#include "app/clusters/fewer_devices.h"

#include <algorithm>
#include <bit>
#include <set>

namespace plait {
namespace {

// Devices of each node that are left.
std::vector<int> left_of(const Cluster& cluster, const ClusterChange& change) {
  std::vector<int> left(cluster.nodes.size());
  for (int d = 0; d < cluster.device_count(); ++d)
    if (!change.lost[d]) ++left[cluster.devices[d].node];
  return left;
}

// At most `most[n]` devices of node n stay.
ClusterChange trimmed(const Cluster& cluster, ClusterChange change, const std::vector<int>& most) {
  std::vector<int> kept(cluster.nodes.size());
  for (int d = 0; d < cluster.device_count(); ++d) {
    const int node = cluster.devices[d].node;
    if (!change.lost[d] && ++kept[node] > most[node]) change.lost[d] = true;
  }
  return change;
}

}  // namespace

std::vector<ClusterChange> with_fewer_devices(const Cluster& before, const ClusterChange& change) {
  const std::vector<int> all = left_of(before, {std::vector<bool>(before.devices.size()), {}, {}});
  const std::vector<int> left = left_of(before, change);
  int least = 0;  // of the nodes that lost some, but not all
  for (std::size_t n = 0; n < left.size(); ++n)
    if (left[n] > 0 && left[n] < all[n]) least = least == 0 ? left[n] : std::min(least, left[n]);
  if (least == 0) return {};
  std::vector<ClusterChange> out;
  std::set<std::vector<bool>> seen{change.lost};
  for (const int most : {least - least % 2, static_cast<int>(std::bit_floor(unsigned(least)))}) {
    if (most == 0) continue;
    std::vector<int> damaged = left;
    std::vector<int> every = left;
    for (std::size_t n = 0; n < left.size(); ++n) {
      every[n] = std::min(left[n], most);
      if (left[n] < all[n]) damaged[n] = every[n];
    }
    for (const std::vector<int>& nodes : {damaged, every}) {
      ClusterChange fewer = trimmed(before, change, nodes);
      if (seen.insert(fewer.lost).second) out.push_back(std::move(fewer));
    }
  }
  return out;
}

}  // namespace plait
