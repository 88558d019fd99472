#include "search/uniform/mixes/node_mixes.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace plait {
namespace {

constexpr double kAllMixes = 8'000;   // are listed if there are no more
constexpr int kMostKindsInSets = 5;   // of which every set is tried
constexpr double kAllOrders = 120;    // are listed if there are no more
constexpr std::size_t kPermuted = 4;  // kinds that are tried in every order

using Key = std::tuple<std::vector<int>, int, Link, Link, UsdPerSecond>;

std::vector<std::vector<DeviceId>> devices_by_node(const Cluster& cluster) {
  std::vector<std::vector<DeviceId>> on_node(cluster.nodes.size());
  for (int i = 0; i < cluster.device_count(); ++i)
    on_node[cluster.devices[i].node].push_back(DeviceId(i));
  return on_node;
}

bool can_run(const Problem& problem, const Target& target, const std::vector<int>& types) {
  return std::ranges::none_of(types, [&](int type) {
    return why_not(target, problem.job, problem.cluster.device_types[type]).has_value();
  });
}

double speed_of(const Cluster& cluster, const std::vector<int>& types) {
  double speed = 0;
  for (const int type : types) {
    const DeviceType& device = cluster.device_types[type];
    speed += device.peak_of(DType::fp16).value * device.efficiency.matmul;
  }
  return speed;
}

// Whole kinds left out, as the bits of `set` say, and of one kind all numbers of nodes.
void add_mixes(const std::vector<NodeKind>& kinds, unsigned set, std::set<NodeMix>& mixes) {
  NodeMix whole(kinds.size(), 0);
  for (std::size_t k = 0; k < kinds.size(); ++k)
    if ((set >> k & 1U) != 0) whole[k] = kinds[k].count();
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    if (whole[k] == 0) continue;
    NodeMix some = whole;
    for (int n = 1; n <= kinds[k].count(); ++n) {
      some[k] = n;
      mixes.insert(some);
    }
  }
}

void add_every_mix(const std::vector<NodeKind>& kinds, std::set<NodeMix>& mixes) {
  NodeMix mix(kinds.size(), 0);
  for (bool more = true; more;) {
    if (std::accumulate(mix.begin(), mix.end(), 0) > 0) mixes.insert(mix);
    more = false;
    for (std::size_t k = 0; k < mix.size() && !more; ++k) {
      more = ++mix[k] <= kinds[k].count();
      if (!more) mix[k] = 0;
    }
  }
}

// Those of which most may be expected: whole kinds left out, and some nodes of one more.
std::set<NodeMix> mixes_by_kind(const std::vector<NodeKind>& kinds) {
  std::set<NodeMix> mixes;
  if (static_cast<int>(kinds.size()) <= kMostKindsInSets) {
    for (unsigned set = 1; set < (1U << kinds.size()); ++set) add_mixes(kinds, set, mixes);
    return mixes;
  }
  // The fastest kinds, one more of them at a time, and each kind alone.
  const NodeMix none(kinds.size(), 0);
  NodeMix fastest = none;
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    for (int n = 1; n <= kinds[k].count(); ++n) {
      fastest[k] = n;
      mixes.insert(fastest);
      NodeMix alone = none;
      alone[k] = n;
      mixes.insert(alone);
    }
  }
  return mixes;
}

std::vector<NodeMix> fastest_first(const std::vector<NodeKind>& kinds,
                                   const std::set<NodeMix>& mixes) {
  std::vector<NodeMix> out(mixes.begin(), mixes.end());
  std::ranges::stable_sort(out, std::ranges::greater{}, [&](const NodeMix& mix) {
    double speed = 0;
    for (std::size_t k = 0; k < kinds.size(); ++k) speed += mix[k] * kinds[k].speed;
    return speed;
  });
  return out;
}

double mix_count(const std::vector<NodeKind>& kinds) {
  double all = 1;
  for (const NodeKind& kind : kinds) all *= kind.count() + 1;
  return all;
}

// Orders of so many things of each kind that can be told apart.
double order_count(const NodeMix& mix) {
  double count = 1;
  int placed = 0;
  for (const int n : mix)
    for (int i = 1; i <= n; ++i) count = count * ++placed / i;
  return count;
}

std::vector<int> in_a_row(const NodeMix& mix, const std::vector<int>& kinds) {
  std::vector<int> order;
  for (const int kind : kinds) order.insert(order.end(), mix[kind], kind);
  return order;
}

}  // namespace

std::vector<NodeKind> node_kinds(const Problem& problem, const Target& target) {
  const Cluster& cluster = problem.cluster;
  const auto on_node = devices_by_node(cluster);
  std::vector<std::pair<Key, NodeKind>> kinds;
  for (int n = 0; n < static_cast<int>(cluster.nodes.size()); ++n) {
    const Node& node = cluster.nodes[n];
    std::vector<int> types;
    for (const DeviceId id : on_node[n]) types.push_back(cluster.device(id).type);
    if (types.empty() || !can_run(problem, target, types)) continue;
    const Key key{types, node.zone, node.intra, node.uplink, node.price};
    auto at = std::ranges::find(kinds, key, &std::pair<Key, NodeKind>::first);
    if (at == kinds.end())
      at = kinds.insert(kinds.end(), {key, {{}, {}, types, speed_of(cluster, types)}});
    at->second.nodes.push_back(n);
    at->second.on_node.push_back(on_node[n]);
  }
  std::vector<NodeKind> out;
  for (auto& [key, kind] : kinds) out.push_back(std::move(kind));
  std::ranges::stable_sort(out, std::ranges::greater{},
                           [](const NodeKind& kind) { return kind.speed / kind.devices(); });
  return out;
}

bool are_all_mixes(const std::vector<NodeKind>& kinds) {
  return kinds.size() == 1 || mix_count(kinds) <= kAllMixes;
}

std::vector<NodeMix> node_mixes(const std::vector<NodeKind>& kinds) {
  const std::set<NodeMix> first = mixes_by_kind(kinds);
  std::vector<NodeMix> out = fastest_first(kinds, first);
  if (mix_count(kinds) > kAllMixes) return out;
  std::set<NodeMix> others;
  add_every_mix(kinds, others);
  std::erase_if(others, [&](const NodeMix& mix) { return first.contains(mix); });
  const std::vector<NodeMix> rest = fastest_first(kinds, others);
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

HostOrders host_orders(const std::vector<NodeKind>& kinds, const NodeMix& mix) {
  std::vector<int> used;
  for (int k = 0; k < static_cast<int>(kinds.size()); ++k)
    if (mix[k] > 0) used.push_back(k);
  HostOrders out;
  std::vector<std::vector<int>>& orders = out.orders;
  if (order_count(mix) <= kAllOrders) {
    std::vector<int> order = in_a_row(mix, used);
    do {
      orders.push_back(order);
    } while (std::ranges::next_permutation(order).found);
    return out;
  }
  out.are_all = false;
  if (used.size() > kPermuted) {
    orders.push_back(in_a_row(mix, used));
    std::ranges::reverse(used);
    orders.push_back(in_a_row(mix, used));
    return out;
  }
  do {
    orders.push_back(in_a_row(mix, used));
  } while (std::ranges::next_permutation(used).found);
  return out;
}

std::vector<DeviceId> devices_in(const std::vector<NodeKind>& kinds,
                                 const std::vector<int>& order) {
  std::vector<int> taken(kinds.size(), 0);
  std::vector<DeviceId> devices;
  for (const int kind : order) {
    const std::vector<DeviceId>& own = kinds[kind].on_node[taken[kind]++];
    devices.insert(devices.end(), own.begin(), own.end());
  }
  return devices;
}

}  // namespace plait
