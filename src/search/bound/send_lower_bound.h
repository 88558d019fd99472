#pragma once

#include <vector>

#include "search/space/space.h"

namespace plait {

// Lower bounds on the time to hand a micro-batch from one stage to the next (hand_over_time in
// cost/stage_cost.h) that do not ask where in their pools the stages stand.
//
// A take is a run of n devices of a pool with P on each node; it begins at a multiple of a, its
// tensor degree or P if that is less, and a tensor group stands on one node or fills several. So it
// has a node to itself when n >= P and a = P, or when n >= 2 P - a, and then P devices share that
// node's network. Neighbours of one pool can be handed everything inside a node only if both find
// room on one; else a group crosses, since every replica has a partner: one of a devices, or, of
// n >= P, all that are not on the last node that the neighbour may use, n - P + 1 or more on one
// node. On pools that share no node everything crosses the network. No bound (zero) where pools
// share nodes, where sends were measured, where stages wait for them and with context groups.
class SendLowerBound {
 public:
  SendLowerBound(const Space& space, const PlanSettings& settings);

  // Between two stages, before unit `unit`.
  Seconds between(const StageOption& from, const StageOption& to, int unit) const;
  // To or from any other stage, at the cut where least is handed over.
  Seconds beside(const StageOption& option) const;

 private:
  struct Traffic {
    double crossing = 0;  // part of the micro-batch that one device sends to another node
    double inside = 0;    // the same to its own node
  };
  Traffic traffic_of(const StageOption& option) const;
  Bytes bytes_at(int unit) const;
  // Least time for the devices of one take of an option, with partners in these pools; of its own
  // pool, `least_partner` devices or more.
  Seconds of_take(const StageOption& option, const Take& take, Bytes bytes,
                  const std::vector<int>& partners, int least_partner) const;

  const Space& space_;
  PlanSettings settings_;
  bool known_ = true;
  bool cuts_sends_ = false;
  Bytes least_bytes_;
  std::vector<std::vector<Link>> links_;  // between pools, as far as it is used
  std::vector<Link> inside_;              // of the nodes of each pool
  std::vector<int> all_pools_;
};

}  // namespace plait
