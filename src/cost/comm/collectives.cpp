#include "cost/comm/collectives.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace plait {
namespace {

// The bandwidth of the narrowest hop of a ring through all members.
BytesPerSecond ring_bandwidth(const Group& group) {
  if (group.nodes == 1) return group.intra.bandwidth;
  if (group.per_node == 1) return group.inter.bandwidth;
  return std::min(group.intra.bandwidth, group.inter.bandwidth);
}

// What a hop over the network costs beyond the wire: protocol and proxy threads. With the 5 us of
// InfiniBand it makes the 20 us per hop that fit the runs on up to 512 devices.
constexpr Seconds kNetworkHop(15e-6);
// The same of a hop of a ring, where messages are in flight on all hops at once.
constexpr Seconds kRingHop(5e-6);

Seconds ring_latency(const Group& group) {
  const Seconds inside = group.intra.latency * (group.members - group.nodes);
  if (group.nodes == 1) return group.intra.latency * (group.members - 1);
  return inside + (group.inter.latency + kRingHop) * group.nodes;
}

Seconds latency(const Group& group) {
  if (group.nodes == 1) return ring_latency(group);
  return (group.inter.latency + kNetworkHop) * std::log2(group.members);
}

Seconds one_way(const Group& group, Bytes size) {
  return size > Bytes(0) ? Ring(group).one_way(size) : Seconds(0);
}

}  // namespace

Ring::Ring(const Group& group) {
  if (group.members == 1) return;
  const double k = group.members;
  part_ = (k - 1) / k;
  bandwidth_ = ring_bandwidth(group);
  latency_ = latency(group);
  ring_latency_ = plait::ring_latency(group);
}

std::vector<NodeShare> by_node(const Cluster& cluster, std::span<const DeviceId> devices) {
  std::vector<NodeShare> shares;
  shares.reserve(std::min(devices.size(), cluster.nodes.size()));
  bool ordered = true;
  for (const DeviceId id : devices) {
    const int node = cluster.device(id).node;
    if (shares.empty() || shares.back().node != node) {
      ordered = ordered && (shares.empty() || shares.back().node < node);
      shares.push_back({node, 0});
    }
    ++shares.back().devices;
  }
  if (ordered) return shares;
  std::ranges::sort(shares, {}, &NodeShare::node);
  std::size_t last = 0;
  for (std::size_t i = 1; i < shares.size(); ++i) {
    if (shares[i].node == shares[last].node)
      shares[last].devices += shares[i].devices;
    else
      shares[++last] = shares[i];
  }
  shares.resize(last + 1);
  return shares;
}

int devices_on(const std::vector<NodeShare>& shares, int node) {
  // Stages mostly stand on nodes that follow each other.
  const std::size_t near = node - shares.front().node;
  if (near < shares.size() && shares[near].node == node) return shares[near].devices;
  return std::ranges::lower_bound(shares, node, {}, &NodeShare::node)->devices;
}

double links_within(const DeviceType& type, int members) {
  if (type.switched || members < 2 || members >= type.per_node) return 1;
  return (members - 1.0) / (type.per_node - 1.0);
}

Group group_of(const Cluster& cluster, std::span<const DeviceId> members, double sharing) {
  PLAIT_CHECK(!members.empty());
  Group group;
  group.members = static_cast<int>(members.size());
  const std::vector<NodeShare> per_node = by_node(cluster, members);
  group.nodes = static_cast<int>(per_node.size());
  bool first = true;
  for (const auto& [node, count] : per_node) {
    group.per_node = std::max(group.per_node, count);
    const Link& intra = cluster.nodes[node].intra;
    group.intra = first ? intra : slower(group.intra, intra);
    first = false;
  }
  first = true;
  for (auto it = per_node.begin(); group.nodes > 1 && it != per_node.end(); ++it) {
    // A ring visits the nodes in order; its last hop closes it.
    const auto next = std::next(it) == per_node.end() ? per_node.begin() : std::next(it);
    const Link hop = link_between_nodes(cluster, it->node, next->node);
    group.inter = first ? hop : slower(group.inter, hop);
    first = false;
  }
  double inside = 1;
  double between = 1;
  for (const DeviceId id : members) {
    const DeviceType& type = cluster.type_of(id);
    const Efficiency& reached = type.efficiency;
    inside = std::min(inside, reached.intra * links_within(type, group.per_node));
    between = std::min(between, reached.inter);
  }
  group.intra.bandwidth = group.intra.bandwidth * inside;
  group.inter.bandwidth = group.inter.bandwidth * between / sharing;
  return group;
}

double network_share(const Group& group) {
  return group.nodes == 1 ? 0 : ring_bandwidth(group) / group.inter.bandwidth;
}

double links_share(const Group& group) {
  if (group.per_node == 1) return 0;
  return ring_bandwidth(group) / group.intra.bandwidth;
}

Seconds all_reduce(const Group& group, Bytes size) { return 2 * one_way(group, size); }

Seconds all_gather(const Group& group, Bytes size) { return one_way(group, size); }

Seconds reduce_scatter(const Group& group, Bytes size) { return one_way(group, size); }

namespace {

// The chance that `part` of what a token's copies may go to gets one of them.
double chance_of_a_copy(double part, double copies) {
  return 1 - std::pow(1 - std::min(part, 1.0), copies);
}

// The chance that a token visits a node, which holds a part of a group or several whole ones.
double chance_of_a_visit(double nodes, const Visits& visits) {
  const double groups = std::max(visits.groups, 1.0);
  const double chosen = std::clamp(visits.chosen, 1.0, groups);
  if (nodes >= groups)
    return chosen / groups * chance_of_a_copy(groups / nodes / chosen, visits.copies);
  // Of the chosen groups h are among the node's: the hypergeometric distribution, from h = 0 on.
  const double held = std::max(1.0, std::floor(groups / nodes));
  double chance = 0;
  for (int h = 1; h <= std::min(held, chosen); ++h) {
    double ways = 1;  // held over h times (groups - held) over (chosen - h), of groups over chosen
    for (int i = 0; i < h; ++i) ways *= (held - i) / (i + 1);
    for (int i = 0; i < chosen - h; ++i) ways *= (groups - held - i) / (i + 1);
    for (int i = 0; i < chosen; ++i) ways *= (i + 1) / (groups - i);
    chance += std::max(ways, 0.0) * chance_of_a_copy(h / chosen, visits.copies);
  }
  return chance;
}

}  // namespace

Seconds all_to_all(const Group& group, Bytes size, const Visits& visits) {
  if (group.members == 1) return {};
  const double k = group.members;
  Seconds time = group.intra.latency;
  if (group.per_node > 1) time += size * ((k - 1) / k) / group.intra.bandwidth;
  if (group.nodes == 1) return time;
  const double nodes = group.nodes;
  // Of a member's bytes: a token goes once to each of the other nodes that have some of its
  // experts.
  const double visited = (nodes - 1) * chance_of_a_visit(nodes, visits);
  const double sent = visited / visits.copies;
  return time + group.inter.latency + size * sent * group.per_node / group.inter.bandwidth;
}

Seconds send(const Link& link, Bytes size) { return link.latency + size / link.bandwidth; }

}  // namespace plait
