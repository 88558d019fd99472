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

}  // namespace plait
