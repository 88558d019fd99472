#pragma once

#include <vector>

#include "cluster/cluster.h"
#include "plan/plan.h"

namespace plait {

// The order of hosts in a file is not an input: what is searched is the cluster in an order that
// depends on the hosts alone, fastest devices first, and plans are given back in the user's ids.
class HostOrder {
 public:
  explicit HostOrder(const Cluster& cluster);

  bool is_canonical() const { return is_canonical_; }
  const Cluster& canonical() const { return canonical_; }
  // From the ids of the canonical cluster to those of the user's.
  void restore(Plan& plan) const;

 private:
  Cluster canonical_;
  std::vector<DeviceId> user_ids_;  // by canonical id
  bool is_canonical_ = true;
};

// Puts replicas of stages that share nodes with their neighbours next to them, as programs have it
// whose nodes have their devices in a row: those on a node of the stage before come first, those on
// a node of the next one last.
//
// Example: stages of devices {1, 4} and {0, 8}, of nodes {0-3}, {4-7} and {8-11}: {4, 1}, {0, 8}.
void put_ranks_in_order(const Cluster& cluster, Plan& plan);

}  // namespace plait
