#pragma once

#include <array>
#include <vector>

#include "base/units.h"
#include "cost/layer/origin.h"
#include "cost/op/op_time.h"
#include "cost/op/replica.h"
#include "plan/plan.h"
#include "plan/problem.h"

namespace plait {

// Costs of all runs of units on one replica shape, each in O(1) by prefix sums.
class UnitTable {
 public:
  UnitTable(const Problem& problem, const ReplicaShape& shape);

  UnitCost cost(const UnitRange& range, Recompute recompute) const {
    const std::vector<UnitCost>& sums = prefix_[static_cast<int>(recompute)];
    UnitCost cost = sums[range.end] - sums[range.begin];
    // Recompute that begins inside a layer keeps what enters there.
    if (in_ops_ && recompute == Recompute::full && range.begin < range.end)
      cost.saved += inside_input_[range.begin];
    return cost;
  }
  // The totals of cost(), for less.
  PassTime pass_time(const UnitRange& range, Recompute recompute) const {
    const UnitCost& a = prefix_[static_cast<int>(recompute)][range.end];
    const UnitCost& b = prefix_[static_cast<int>(recompute)][range.begin];
    return {(a.forward - b.forward) + (a.forward_comm - b.forward_comm),
            (a.backward - b.backward) + (a.weight_gradient - b.weight_gradient) +
                (a.recompute - b.recompute) + (a.backward_comm - b.backward_comm)};
  }
  // What the backward pass of a recomputed unit needs beside what is saved: the most that any unit
  // of the range repeats. Ops repeat together, up to the next layer.
  Bytes working_set(const UnitRange& range, Recompute recompute) const;
  // The largest measured workspace of a unit's backward pass.
  Bytes workspace(const UnitRange& range) const {
    return workspace_.empty() ? Bytes(0) : most(workspace_, range);
  }
  // What cost(.., Recompute::full) keeps to begin at a unit inside a layer.
  Bytes inside_input(int unit) const { return in_ops_ ? inside_input_[unit] : Bytes(0); }

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
  // The weakest of the units' sources.
  Source time_source(const UnitRange& range) const { return weakest(time_counts_, range); }
  Source memory_source(const UnitRange& range) const { return weakest(memory_counts_, range); }
  const Origin& origin(int unit) const { return origins_[kind_of_[unit]]; }

 private:
  std::array<std::vector<UnitCost>, 3> prefix_;    // by Recompute; [i] = units [0, i)
  using Levels = std::vector<std::vector<Bytes>>;  // [l][u] = most of units [u, u + 2^l)
  static Levels levels_of(std::vector<Bytes> units);
  static Bytes most(const Levels& levels, const UnitRange& range);
  // [i] = interpolated and analytic ones among units [0, i)
  using SourceCounts = std::vector<std::array<int, 2>>;
  static Source weakest(const SourceCounts& counts, const UnitRange& range);

  std::array<Levels, 3> working_set_;  // by Recompute
  Levels workspace_;                   // measured; empty when nothing was
  std::vector<Extent> extent_;         // [i] = units [0, i)
  SourceCounts time_counts_;
  SourceCounts memory_counts_;
  std::vector<Origin> origins_;      // by kind
  std::vector<int> kind_of_;         // by unit
  bool in_ops_ = false;              // some units do not start a layer; then also, for each unit:
  std::vector<Bytes> inside_input_;  // what recompute keeps to begin there; 0 at the start of one
  std::vector<int> next_layer_;      // the first unit after it that starts one
};

}  // namespace plait
