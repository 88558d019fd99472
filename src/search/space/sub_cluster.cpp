#include "search/space/sub_cluster.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/error.h"

namespace plait {
namespace {

// The new position of old position i in a list of those that are wanted; made at first sight.
int renumbered(std::vector<int>& numbers, int i, int& next) {
  if (numbers[i] < 0) numbers[i] = next++;
  return numbers[i];
}

}  // namespace

SubCluster keep_devices(const Cluster& whole, const std::vector<bool>& kept) {
  PLAIT_CHECK(kept.size() == whole.devices.size());
  SubCluster part;
  part.cluster.name = whole.name;
  part.cluster.is_part = whole.is_part;
  part.position.assign(whole.devices.size(), -1);
  std::vector<int> types(whole.device_types.size(), -1);
  std::vector<int> zones(whole.zones.size(), -1);
  int next_type = 0;
  int next_zone = 0;
  int last_node = -1;
  for (int i = 0; i < whole.device_count(); ++i) {
    if (!kept[i]) continue;
    const Device& device = whole.devices[i];
    if (device.node != last_node) {
      last_node = device.node;
      Node node = whole.nodes[device.node];
      const int zone = renumbered(zones, node.zone, next_zone);
      if (zone == static_cast<int>(part.cluster.zones.size()))
        part.cluster.zones.push_back(whole.zones[node.zone]);
      node.zone = zone;
      part.cluster.nodes.push_back(std::move(node));
      part.original_node.push_back(device.node);
    }
    const int type = renumbered(types, device.type, next_type);
    if (type == static_cast<int>(part.cluster.device_types.size()))
      part.cluster.device_types.push_back(whole.device_types[device.type]);
    part.position[i] = part.cluster.device_count();
    part.cluster.devices.push_back({type, static_cast<int>(part.cluster.nodes.size()) - 1});
    part.original.push_back(DeviceId(i));
  }
  for (const ZoneLink& link : whole.zone_links)
    if (zones[link.a] >= 0 && zones[link.b] >= 0)
      part.cluster.zone_links.push_back({zones[link.a], zones[link.b], link.link});
  return part;
}

Plan in_whole(const SubCluster& part, Plan plan) {
  for (Stage& stage : plan.stages)
    for (DeviceId& id : stage.devices) id = part.original[index(id)];
  return plan;
}

std::vector<std::vector<int>> node_kinds(const Cluster& cluster) {
  std::vector<std::vector<int>> types(cluster.nodes.size());
  for (const Device& device : cluster.devices) types[device.node].push_back(device.type);
  using Key = std::tuple<std::vector<int>, int, Link, Link, UsdPerSecond>;
  std::vector<std::pair<Key, std::vector<int>>> kinds;
  for (std::size_t n = 0; n < cluster.nodes.size(); ++n) {
    const Node& node = cluster.nodes[n];
    const Key key{types[n], node.zone, node.intra, node.uplink, node.price};
    auto it = std::ranges::find(kinds, key, &std::pair<Key, std::vector<int>>::first);
    if (it == kinds.end()) it = kinds.insert(kinds.end(), {key, {}});
    it->second.push_back(static_cast<int>(n));
  }
  std::vector<std::vector<int>> out;
  for (auto& [key, nodes] : kinds) out.push_back(std::move(nodes));
  return out;
}

}  // namespace plait
