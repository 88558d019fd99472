#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "base/units.h"
#include "cost/layer/origin.h"
#include "cost/layer/range_maximum.h"
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
    const int r = static_cast<int>(recompute);
    UnitCost cost;
    passes_[r][range.end].minus(passes_[r][range.begin], cost);
    parameters_[range.end].minus(parameters_[range.begin], cost);
    if (!measured_[r].empty()) measured_[r][range.end].minus(measured_[r][range.begin], cost);
    // Recompute that begins inside a layer keeps what enters there.
    if (in_ops_ && recompute == Recompute::full && range.begin < range.end)
      cost.saved += recompute_input_[range.begin];
    return cost;
  }
  // The totals of cost(), for less.
  PassTime pass_time(const UnitRange& range, Recompute recompute) const {
    const Pass& a = passes_[static_cast<int>(recompute)][range.end];
    const Pass& b = passes_[static_cast<int>(recompute)][range.begin];
    return {(a.forward - b.forward) + (a.forward_comm - b.forward_comm),
            (a.backward - b.backward) + (a.weight_gradient - b.weight_gradient) +
                (a.recompute - b.recompute) + (a.backward_comm - b.backward_comm)};
  }
  // What the backward pass of a recomputed layer needs beside what is saved: the most that any
  // layer repeats, or the part of a layer at either end of the range.
  Bytes working_set(const UnitRange& range, Recompute recompute) const;
  // The largest workspace of a unit's backward pass: measured, or for weights kept in 4 bits.
  Bytes workspace(const UnitRange& range) const {
    return workspace_.empty() ? Bytes(0) : workspace_.most(range);
  }
  // What enters at a unit inside a layer; 0 at the start of one.
  Bytes inside_input(int unit) const { return in_ops_ ? inside_input_[unit] : Bytes(0); }
  // What cost(.., Recompute::full) keeps of that: nothing in layers that are not recomputed.
  Bytes recompute_input(int unit) const { return in_ops_ ? recompute_input_[unit] : Bytes(0); }

  // Additive facts about a run of units that no time depends on.
  struct Extent {
    Bytes loss;                   // logits and their gradients at the peak of the losses
    Bytes kept_loss;              // of that, kept between forward and backward
    double table_parameters = 0;  // of the input and output layers, on this device
  };
  Extent extent(const UnitRange& range) const {
    const Extent& a = extent_[range.end];
    const Extent& b = extent_[range.begin];
    return {a.loss - b.loss, a.kept_loss - b.kept_loss, a.table_parameters - b.table_parameters};
  }
  // Layers that have a unit in the range, input and output layers not counted. Not empty.
  int blocks(const UnitRange& range) const {
    return blocks_until_[range.end - 1] - blocks_until_[range.begin] +
           (is_block_[range.begin] ? 1 : 0);
  }
  // The units of the range that are in the layer of its first one.
  UnitRange first_layer(const UnitRange& range) const {
    if (!in_ops_) return {range.begin, range.begin + 1};
    return {range.begin, std::min(range.end, layer_begin_[layer_of_[range.begin] + 1])};
  }
  // The weakest of the units' sources.
  Source time_source(const UnitRange& range) const { return weakest(time_counts_, range); }
  Source memory_source(const UnitRange& range) const { return weakest(memory_counts_, range); }
  const Origin& origin(int unit) const { return origins_[origin_of_[unit]]; }

 private:
  // Sums of the fields of UnitCost. They are kept apart: what does not depend on recompute is kept
  // once, and what only profiles say not at all without one.
  struct Pass {
    Seconds forward;
    Seconds backward;
    Seconds weight_gradient;
    Seconds recompute;
    Seconds forward_comm;
    Seconds backward_comm;
    Seconds network_forward;
    Seconds network_backward;
    Bytes saved;
    void add(const UnitCost& unit);
    void minus(const Pass& before, UnitCost& into) const {
      into.forward = forward - before.forward;
      into.backward = backward - before.backward;
      into.weight_gradient = weight_gradient - before.weight_gradient;
      into.recompute = recompute - before.recompute;
      into.forward_comm = forward_comm - before.forward_comm;
      into.backward_comm = backward_comm - before.backward_comm;
      into.network_forward = network_forward - before.network_forward;
      into.network_backward = network_backward - before.network_backward;
      into.saved = saved - before.saved;
    }
  };
  struct Parameters {
    double all = 0;
    double experts = 0;
    double trained = 0;
    double trained_experts = 0;
    void add(const UnitCost& unit);
    void minus(const Parameters& before, UnitCost& into) const {
      into.parameters = all - before.all;
      into.expert_parameters = experts - before.experts;
      into.trained = trained - before.trained;
      into.trained_experts = trained_experts - before.trained_experts;
    }
  };
  struct Measured {
    Bytes held;
    Seconds optimizer;
    double optimizer_parameters = 0;
    void add(const UnitCost& unit);
    void minus(const Measured& before, UnitCost& into) const {
      into.held = held - before.held;
      into.optimizer = optimizer - before.optimizer;
      into.optimizer_parameters = optimizer_parameters - before.optimizer_parameters;
    }
  };
  std::array<std::vector<Pass>, 3> passes_;  // by Recompute; [i] = units [0, i)
  std::vector<Parameters> parameters_;
  std::array<std::vector<Measured>, 3> measured_;
  // [i] = interpolated and analytic ones among units [0, i)
  using SourceCounts = std::vector<std::array<int, 2>>;
  static Source weakest(const SourceCounts& counts, const UnitRange& range);

  std::array<RangeMaximum, 3> working_set_;  // by Recompute; of layers
  RangeMaximum workspace_;                   // empty when no unit has one
  std::vector<Extent> extent_;               // [i] = units [0, i)
  SourceCounts time_counts_;
  SourceCounts memory_counts_;
  std::vector<Origin> origins_;                 // distinct ones
  std::vector<int> origin_of_;                  // by unit
  std::vector<int> blocks_until_;               // by unit: layers that are blocks up to its own
  std::vector<bool> is_block_;                  // by unit: its layer is one
  bool in_ops_ = false;                         // some layers have several units; then also
  std::vector<int> layer_of_;                   // by unit
  std::vector<int> layer_begin_;                // by layer, then the number of units
  std::array<std::vector<Bytes>, 3> repeated_;  // by Recompute: sums over units [0, i)
  std::vector<Bytes> inside_input_;
  std::vector<Bytes> recompute_input_;
};

}  // namespace plait
