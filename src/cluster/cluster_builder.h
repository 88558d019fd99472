#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "cluster/cluster.h"

namespace plait {

inline constexpr int kMaxDevices = 1'000'000;
inline constexpr int kMaxZones = 256;

// Puts a Cluster together node by node and refuses what no cluster may be: a name used twice, a
// node without devices, more than kMaxDevices. `where` in every call is the place that the user
// can correct. All readers of clusters (JSON, hostfile, shorthand) go through it.
class ClusterBuilder {
 public:
  explicit ClusterBuilder(std::string name) { cluster_.name = std::move(name); }

  // The index of the type; the same name must mean the same hardware.
  int type(const DeviceType& type, const std::string& where);

  // The index of the zone, which is made when it is new.
  int zone(const std::string& name, const std::string& where);
  bool has_zone(const std::string& name) const;
  int zone_count() const { return static_cast<int>(cluster_.zones.size()); }
  // InputError when the two zones are the same or already have a link.
  void zone_link(int a, int b, const Link& link, const std::string& where);

  struct Group {
    int type = 0;
    int count = 0;
  };
  void node(Node node, const std::vector<Group>& groups, const std::string& where);

  // "prefix-0", "prefix-1", ...: the next name that is free.
  std::string free_name(const std::string& prefix);

  // Names of the zone pairs that have no link yet, after giving each `fallback`.
  std::vector<std::pair<std::string, std::string>> join_zones(const Link& fallback);

  // The cluster; InputError at `where` when it has no devices.
  Cluster finish(const std::string& where) &&;

 private:
  Cluster cluster_;
  std::unordered_set<std::string> node_names_;
  std::unordered_map<std::string, int> next_number_;
};

}  // namespace plait
