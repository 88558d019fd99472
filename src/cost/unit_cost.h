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
  // From measurements (cost/measured.h); 0 where there are none.
  Bytes held;                       // beyond states and what is saved, whatever is in flight
  Seconds optimizer;                // of the parameters that it was measured for
  double optimizer_parameters = 0;  // of those

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
  // The most that any unit of the range keeps while its own backward runs; with full recompute this
  // comes on top of the saved inputs.
  Bytes largest_working_set(const UnitRange& range) const;
  // Logits in fp32 that the losses of the range need beside what is saved.
  Bytes loss_workspace(const UnitRange& range) const {
    return loss_prefix_[range.end] - loss_prefix_[range.begin];
  }
  // The weakest of the units' sources.
  Source time_source(const UnitRange& range) const { return weakest(time_counts_, range); }
  Source memory_source(const UnitRange& range) const { return weakest(memory_counts_, range); }

 private:
  std::array<std::vector<UnitCost>, 3> prefix_;  // by Recompute; [i] = units [0, i)
  std::vector<std::vector<Bytes>> working_set_;  // [l][u] = largest of units [u, u + 2^l)
  std::vector<Bytes> loss_prefix_;               // [i] = units [0, i)
  // [i] = interpolated and analytic ones among units [0, i)
  using SourceCounts = std::vector<std::array<int, 2>>;
  static Source weakest(const SourceCounts& counts, const UnitRange& range);
  SourceCounts time_counts_;
  SourceCounts memory_counts_;
};

}  // namespace plait
