#include "cluster/cluster_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"

namespace plait {

int ClusterBuilder::type(const DeviceType& type, const std::string& where) {
  auto& types = cluster_.device_types;
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i].name != type.name) continue;
    if (types[i] == type) return static_cast<int>(i);
    throw InputError(where, fmt::format("device type '{}' is described twice, differently; give "
                                        "one of them another name",
                                        type.name));
  }
  types.push_back(type);
  return static_cast<int>(types.size()) - 1;
}

bool ClusterBuilder::has_zone(const std::string& name) const {
  return std::ranges::find(cluster_.zones, name) != cluster_.zones.end();
}

int ClusterBuilder::zone(const std::string& name, const std::string& where) {
  auto& zones = cluster_.zones;
  const auto it = std::ranges::find(zones, name);
  if (it != zones.end()) return static_cast<int>(it - zones.begin());
  if (name.empty()) throw InputError(where, "a zone needs a name");
  if (zones.size() == kMaxZones)
    throw InputError(where, fmt::format("more than {} zones", kMaxZones));
  zones.push_back(name);
  return static_cast<int>(zones.size()) - 1;
}

void ClusterBuilder::zone_link(int a, int b, const Link& link, const std::string& where) {
  if (a == b)
    throw InputError(where, fmt::format("links zone '{}' with itself; inside a zone the nodes' own "
                                        "network counts",
                                        cluster_.zones[a]));
  for (const ZoneLink& old : cluster_.zone_links)
    if ((old.a == a && old.b == b) || (old.a == b && old.b == a))
      throw InputError(where, fmt::format("zones '{}' and '{}' already have a link",
                                          cluster_.zones[a], cluster_.zones[b]));
  cluster_.zone_links.push_back({a, b, link});
}

void ClusterBuilder::node(Node node, const std::vector<Group>& groups, const std::string& where) {
  long total = cluster_.device_count();
  for (const Group& group : groups) total += group.count;
  if (total == cluster_.device_count())
    throw InputError(where, fmt::format("node '{}' has no devices", node.name));
  if (total > kMaxDevices)
    throw InputError(where, fmt::format("more than {} devices", kMaxDevices));
  if (!node_names_.insert(node.name).second)
    throw InputError(where, fmt::format("node name '{}' is used twice", node.name));
  const int index = static_cast<int>(cluster_.nodes.size());
  for (const Group& group : groups)
    cluster_.devices.insert(cluster_.devices.end(), group.count, Device{group.type, index});
  cluster_.nodes.push_back(std::move(node));
}

std::string ClusterBuilder::free_name(const std::string& prefix) {
  int& number = next_number_[prefix];
  std::string name = fmt::format("{}-{}", prefix, number++);
  while (node_names_.contains(name)) name = fmt::format("{}-{}", prefix, number++);
  return name;
}

std::vector<std::pair<std::string, std::string>> ClusterBuilder::join_zones(const Link& fallback) {
  std::set<std::pair<int, int>> joined;
  for (const ZoneLink& link : cluster_.zone_links) joined.insert(std::minmax({link.a, link.b}));
  std::vector<std::pair<std::string, std::string>> out;
  const int zones = static_cast<int>(cluster_.zones.size());
  for (int a = 0; a < zones; ++a)
    for (int b = a + 1; b < zones; ++b) {
      if (joined.contains({a, b})) continue;
      cluster_.zone_links.push_back({a, b, fallback});
      out.emplace_back(cluster_.zones[a], cluster_.zones[b]);
    }
  return out;
}

Cluster ClusterBuilder::finish(const std::string& where) && {
  if (cluster_.devices.empty()) throw InputError(where, "the cluster has no devices");
  PLAIT_CHECK(!cluster_.zones.empty());
  return std::move(cluster_);
}

}  // namespace plait
