#pragma once

#include <vector>

#include "plan/problem.h"
#include "plan/target.h"

namespace plait {

// Nodes that nothing tells apart but their position.
struct NodeKind {
  std::vector<int> nodes;                      // positions in Cluster::nodes
  std::vector<std::vector<DeviceId>> on_node;  // devices of each
  std::vector<int> types;                      // of the devices of one of them, in order
  double speed = 0;                            // of one of them, by the rate of matrix products
  int devices() const { return static_cast<int>(types.size()); }
  int count() const { return static_cast<int>(nodes.size()); }
};

// Those that the job can run on, fastest devices first.
std::vector<NodeKind> node_kinds(const Problem& problem, const Target& target);

// How many nodes of each kind are launched; the others rest.
using NodeMix = std::vector<int>;

// Ways to leave nodes out: whole kinds, and some nodes of one more kind; then, where there are few,
// all others. Of both the fastest first.
std::vector<NodeMix> node_mixes(const std::vector<NodeKind>& kinds);
// Whether these are all ways to leave nodes out.
bool are_all_mixes(const std::vector<NodeKind>& kinds);

// The orders in which the hosts of a mix may be listed: all that differ where there are few, else
// those with the nodes of a kind in a row. Each is a list of kinds, node by node.
struct HostOrders {
  std::vector<std::vector<int>> orders;
  bool are_all = true;
};
HostOrders host_orders(const std::vector<NodeKind>& kinds, const NodeMix& mix);

// The devices of the hosts in that order.
std::vector<DeviceId> devices_in(const std::vector<NodeKind>& kinds, const std::vector<int>& order);

}  // namespace plait
