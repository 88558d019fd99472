#pragma once

#include <vector>

#include "cost/engine.h"
#include "search/search.h"

namespace plait {

// A lower bound on the step of any part of a cluster, from what its devices can compute at best:
// no communication, no bubble, no memory limit, the best micro-batch and cut for every device.
//
// With e(k, p) the least device-seconds that unit kind k takes of device type p for one sample over
// all tensor, context and expert degrees and samples at once, and
//   worth(p) = 1 / sum over units of e(kind, p)      models that one device does in a second
//   spend(k) = min over p of worth(p) e(k, p)
// a step of B samples keeps devices busy for B sum_k spend(k) of worth, so it takes at least
//   B sum over units of spend(kind) / sum over devices of worth(type).
class ThroughputFloor {
 public:
  ThroughputFloor(const CostEngine& engine, const Pins& pins);

  // Of the part of the cluster with these devices; counts by device type of the cluster.
  Seconds step(const std::vector<int>& devices) const;

 private:
  std::vector<double> worth_;  // by device type
  double spend_ = 0;           // of a step
};

}  // namespace plait
