#pragma once

#include <array>
#include <vector>

#include "base/units.h"
#include "cost/collectives.h"
#include "cost/estimate.h"
#include "cost/op_time.h"
#include "plan/plan.h"
#include "plan/problem.h"

namespace plait {

// Cost of one unit, or of a run of units, for one micro-batch on one device. Additive.
struct UnitCost {
  Seconds forward;
  Seconds backward;  // input gradients; recompute not included
  Seconds weight_gradient;
  Seconds recompute;
  Seconds forward_comm;   // exposed
  Seconds backward_comm;  // exposed, recompute's included
  Bytes saved;            // kept for backward
  double parameters = 0;  // on this device, experts not included
  double expert_parameters = 0;

  UnitCost& operator+=(const UnitCost& other);
  friend UnitCost operator-(UnitCost a, const UnitCost& b);
  Seconds forward_total() const { return forward + forward_comm; }
  Seconds backward_total() const { return backward + weight_gradient + recompute + backward_comm; }
  Seconds total() const { return forward_total() + backward_total(); }
};

// What decides the cost of units on a replica, besides the problem itself.
struct ReplicaShape {
  int device_type = 0;
  Sharding sharding;
  Group tensor_group;   // of sharding.tensor members
  Group context_group;  // of sharding.context members
  Group expert_group;   // of sharding.expert members
  // Over which weights are cut (ZeRO-3; ZeRO-2 of FSDP); of one member where they are not.
  Group weight_group;
  Group expert_weight_group;
  bool gathers_backward = true;  // weights are gathered again for backward
  friend auto operator<=>(const ReplicaShape&, const ReplicaShape&) = default;
};

// Costs of all runs of units on one replica shape, each in O(1) by prefix sums.
class UnitTable {
 public:
  UnitTable(const Problem& problem, const ReplicaShape& shape);

  UnitCost cost(const UnitRange& range, Recompute recompute) const {
    const std::vector<UnitCost>& sums = prefix_[static_cast<int>(recompute)];
    return sums[range.end] - sums[range.begin];
  }
  // What the backward pass of a recomputed unit needs beside what is saved: the most that any unit
  // of the range repeats.
  Bytes working_set(const UnitRange& range, Recompute recompute) const;

  // Additive facts about a run of units that no time depends on.
  struct Extent {
    Bytes loss;                   // logits and their gradients at the peak of the losses
    Bytes kept_loss;              // of that, kept between forward and backward
    double table_parameters = 0;  // of the input and output layers, on this device
    int tables = 0;               // units that are input or output layers
  };
  Extent extent(const UnitRange& range) const {
    const Extent& a = extent_[range.end];
    const Extent& b = extent_[range.begin];
    return {a.loss - b.loss, a.kept_loss - b.kept_loss, a.table_parameters - b.table_parameters,
            a.tables - b.tables};
  }
  Source source() const { return source_; }

 private:
  std::array<std::vector<UnitCost>, 3> prefix_;  // by Recompute; [i] = units [0, i)
  // By Recompute: [l][u] = most of units [u, u + 2^l).
  std::array<std::vector<std::vector<Bytes>>, 3> working_set_;
  std::vector<Extent> extent_;  // [i] = units [0, i)
  Source source_ = Source::analytic;
};

}  // namespace plait
