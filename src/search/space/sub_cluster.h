#pragma once

#include <vector>

#include "cluster/cluster.h"
#include "plan/plan.h"

namespace plait {

// Part of a cluster, and where its devices and nodes stand in the whole.
struct SubCluster {
  Cluster cluster;
  std::vector<DeviceId> original;  // by device of the part
  std::vector<int> original_node;  // by node of the part
  std::vector<int> position;       // by device of the whole; -1 = not in the part
};

// The devices for which `kept` is true; nodes, zones and device types that have none go.
SubCluster keep_devices(const Cluster& whole, const std::vector<bool>& kept);

// The plan of the part as a plan of the whole, whose other devices are idle.
Plan in_whole(const SubCluster& part, Plan plan);

// Positions of nodes that nothing tells apart but their names: same devices, links, zone and price.
// Kinds in order of first appearance, nodes ascending.
std::vector<std::vector<int>> node_kinds(const Cluster& cluster);

}  // namespace plait
