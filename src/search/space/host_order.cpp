#include "search/space/host_order.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <vector>

namespace plait {
namespace {

// Positions in the order of their keys; equal keys stay as they are.
template <typename Key>
std::vector<int> sorted_positions(const std::vector<Key>& keys) {
  std::vector<int> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int a, int b) { return keys[a] < keys[b]; });
  return order;
}

std::vector<int> inverse(const std::vector<int>& order) {
  std::vector<int> rank(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) rank[order[i]] = static_cast<int>(i);
  return rank;
}

// Fastest first; the name only where nothing else differs.
auto key_of(const DeviceType& type) {
  return std::tuple(-type.peak_of(DType::fp16).value * type.efficiency.matmul, -type.memory.value,
                    -type.memory_bandwidth.value, type.per_node, type.name);
}

// Devices, then the network, the links inside and the price.
using NodeKey = std::tuple<std::vector<int>, double, Link, Link, UsdPerSecond>;

std::vector<std::vector<int>> devices_by_node(const Cluster& cluster) {
  std::vector<std::vector<int>> on_node(cluster.nodes.size());
  for (int i = 0; i < cluster.device_count(); ++i) on_node[cluster.devices[i].node].push_back(i);
  return on_node;
}

// Of nodes of one type, those with most devices and the fastest network come first.
std::vector<NodeKey> node_keys(const Cluster& cluster, const std::vector<int>& type_rank) {
  const std::vector<std::vector<int>> on_node = devices_by_node(cluster);
  std::vector<NodeKey> keys;
  for (std::size_t n = 0; n < cluster.nodes.size(); ++n) {
    const Node& node = cluster.nodes[n];
    std::vector<int> held;
    for (const int i : on_node[n]) held.push_back(type_rank[cluster.devices[i].type]);
    std::ranges::sort(held);
    held.insert(held.begin() + 1, -static_cast<int>(held.size()));
    keys.emplace_back(std::move(held), -node.uplink.bandwidth.value, node.uplink, node.intra,
                      node.price);
  }
  return keys;
}

// Zones by their nodes.
std::vector<int> zone_order(const Cluster& cluster, const std::vector<NodeKey>& keys) {
  std::vector<std::vector<NodeKey>> zones(cluster.zones.size());
  for (std::size_t n = 0; n < keys.size(); ++n) zones[cluster.nodes[n].zone].push_back(keys[n]);
  for (std::vector<NodeKey>& own : zones) std::ranges::sort(own);
  return sorted_positions(zones);
}

std::vector<ZoneLink> renamed(std::vector<ZoneLink> links, const std::vector<int>& zone_rank) {
  for (ZoneLink& link : links) {
    link.a = zone_rank[link.a];
    link.b = zone_rank[link.b];
    if (link.a > link.b) std::swap(link.a, link.b);
  }
  std::ranges::sort(links);
  return links;
}

}  // namespace

HostOrder::HostOrder(const Cluster& cluster) {
  std::vector<decltype(key_of(cluster.device_types.front()))> type_keys;
  for (const DeviceType& type : cluster.device_types) type_keys.push_back(key_of(type));
  const std::vector<int> types = sorted_positions(type_keys);
  const std::vector<int> type_rank = inverse(types);
  const std::vector<NodeKey> keys = node_keys(cluster, type_rank);
  const std::vector<int> zones = zone_order(cluster, keys);
  const std::vector<int> zone_rank = inverse(zones);
  std::vector<std::pair<NodeKey, int>> with_zone;
  for (std::size_t n = 0; n < keys.size(); ++n)
    with_zone.emplace_back(keys[n], zone_rank[cluster.nodes[n].zone]);

  canonical_.name = cluster.name;
  for (const int t : types) canonical_.device_types.push_back(cluster.device_types[t]);
  for (const int z : zones) canonical_.zones.push_back(cluster.zones[z]);
  canonical_.zone_links = renamed(cluster.zone_links, zone_rank);
  const auto rank = [&](int i) { return type_rank[cluster.devices[i].type]; };
  std::vector<std::vector<int>> on_node = devices_by_node(cluster);
  for (const int n : sorted_positions(with_zone)) {
    canonical_.nodes.push_back(cluster.nodes[n]);
    canonical_.nodes.back().zone = zone_rank[cluster.nodes[n].zone];
    const int position = static_cast<int>(canonical_.nodes.size()) - 1;
    std::ranges::stable_sort(on_node[n], {}, rank);
    for (const int i : on_node[n]) {
      canonical_.devices.push_back({rank(i), position});
      user_ids_.push_back(DeviceId(i));
    }
  }
  is_canonical_ = std::ranges::is_sorted(types) && std::ranges::is_sorted(zones) &&
                  std::ranges::is_sorted(user_ids_);
}

void HostOrder::restore(Plan& plan) const {
  for (Stage& stage : plan.stages)
    for (DeviceId& id : stage.devices) id = user_ids_[index(id)];
}

namespace {

std::set<int> nodes_of(const Cluster& cluster, const Plan& plan, int stage) {
  std::set<int> nodes;
  if (stage < 0 || stage >= plan.stage_count()) return nodes;
  for (const DeviceId id : plan.stages[stage].devices) nodes.insert(cluster.device(id).node);
  return nodes;
}

// Of a stage, and where it comes: beside which neighbour, then as it was.
struct Replica {
  int side = 1;  // 0 = of the stage before, 2 = of the next one
  int node = 0;  // in order of first appearance
  std::vector<DeviceId> devices;
  int share = 0;
};

}  // namespace

void put_ranks_in_order(const Cluster& cluster, Plan& plan) {
  for (int s = 0; s < plan.stage_count(); ++s) {
    Stage& stage = plan.stages[s];
    const int data = stage.spans.front().data;
    const std::set<int> before = nodes_of(cluster, plan, s - 1);
    const std::set<int> after = nodes_of(cluster, plan, s + 1);
    const std::size_t size = stage.devices.size() / data;
    std::vector<Replica> replicas;
    std::vector<int> seen;
    for (int d = 0; d < data; ++d) {
      Replica& own = replicas.emplace_back();
      const auto from = stage.devices.begin() + static_cast<long>(d * size);
      own.devices.assign(from, from + static_cast<long>(size));
      const int node = cluster.device(own.devices.front()).node;
      own.side = before.contains(node) ? 0 : after.contains(node) ? 2 : 1;
      if (std::ranges::find(seen, node) == seen.end()) seen.push_back(node);
      own.node = static_cast<int>(std::ranges::find(seen, node) - seen.begin());
      if (!stage.shares.empty()) own.share = stage.shares[d];
    }
    std::ranges::stable_sort(replicas, {},
                             [](const Replica& own) { return std::tuple(own.side, own.node); });
    stage.devices.clear();
    for (const Replica& own : replicas)
      stage.devices.insert(stage.devices.end(), own.devices.begin(), own.devices.end());
    for (std::size_t d = 0; d < stage.shares.size(); ++d) stage.shares[d] = replicas[d].share;
  }
}

}  // namespace plait
