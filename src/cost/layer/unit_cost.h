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

struct LayerCost;

// Costs of all runs of units on one replica shape, each in O(1) by prefix sums: over layers, and,
// where layers have several units, over those of every distinct layer. So what is kept grows with
// the number of layers.
class UnitTable {
 public:
  UnitTable(const Problem& problem, const ReplicaShape& shape);

  UnitCost cost(const UnitRange& range, Recompute recompute) const {
    const std::vector<UnitCost>& sums = prefix_[static_cast<int>(recompute)];
    if (!in_ops_) return sums[range.end] - sums[range.begin];
    const std::vector<UnitCost>& inner = inner_[static_cast<int>(recompute)];
    UnitCost cost = sums[layer_of_[range.end]] - sums[layer_of_[range.begin]];
    cost += inner[cost_of_[range.end]] - inner[cost_of_[range.begin]];
    // Recompute that begins inside a layer keeps what enters there.
    if (recompute == Recompute::full && range.begin < range.end)
      cost.saved += recompute_input(range.begin);
    return cost;
  }
  // The totals of cost(), for less.
  PassTime pass_time(const UnitRange& range, Recompute recompute) const {
    const std::vector<UnitCost>& sums = prefix_[static_cast<int>(recompute)];
    if (!in_ops_) return passes_between(sums[range.begin], sums[range.end]);
    const std::vector<UnitCost>& inner = inner_[static_cast<int>(recompute)];
    PassTime time = passes_between(sums[layer_of_[range.begin]], sums[layer_of_[range.end]]);
    const PassTime more = passes_between(inner[cost_of_[range.begin]], inner[cost_of_[range.end]]);
    return {time.forward + more.forward, time.backward + more.backward};
  }
  // What the backward pass of a recomputed layer needs beside what is saved: the most that any
  // layer repeats, or the part of a layer at either end of the range.
  Bytes working_set(const UnitRange& range, Recompute recompute) const;
  // The largest workspace of a unit's backward pass: measured, or for weights kept in 4 bits.
  Bytes workspace(const UnitRange& range) const;
  // What enters at a unit inside a layer; 0 at the start of one.
  Bytes inside_input(int unit) const { return in_ops_ ? inside_input_[cost_of_[unit]] : Bytes(0); }
  // What cost(.., Recompute::full) keeps of that: nothing in layers that are not recomputed.
  Bytes recompute_input(int unit) const {
    return in_ops_ ? recompute_input_[cost_of_[unit]] : Bytes(0);
  }

  // Additive facts about a run of units that no time depends on.
  struct Extent {
    Bytes loss;                   // logits and their gradients at the peak of the losses
    Bytes kept_loss;              // of that, kept between forward and backward
    double table_parameters = 0;  // of the input and output layers, on this device
    Extent& operator+=(const Extent& other);
    friend Extent operator-(Extent a, const Extent& b);
  };
  Extent extent(const UnitRange& range) const {
    Extent out = facts_[layer_of_[range.end]].extent - facts_[layer_of_[range.begin]].extent;
    if (in_ops_)
      out += inner_facts_[cost_of_[range.end]].extent - inner_facts_[cost_of_[range.begin]].extent;
    return out;
  }
  // Layers that have a unit in the range, input and output layers not counted. Not empty.
  int blocks(const UnitRange& range) const {
    const int first = layer_of_[range.begin];
    return blocks_until_[layer_of_[range.end - 1]] - blocks_until_[first] +
           (is_block_[first] ? 1 : 0);
  }
  // The units of the range that are in the layer of its first one.
  UnitRange first_layer(const UnitRange& range) const {
    return {range.begin, std::min(range.end, layer_begin_[layer_of_[range.begin] + 1])};
  }
  // The weakest of the units' sources.
  Source time_source(const UnitRange& range) const { return weakest(&Facts::time, range); }
  Source memory_source(const UnitRange& range) const { return weakest(&Facts::memory, range); }
  const Origin& origin(int unit) const { return origins_[cost_of_[unit]]; }

 private:
  static PassTime passes_between(const UnitCost& b, const UnitCost& a) {
    return {(a.forward - b.forward) + (a.forward_comm - b.forward_comm),
            (a.backward - b.backward) + (a.weight_gradient - b.weight_gradient) +
                (a.recompute - b.recompute) + (a.backward_comm - b.backward_comm)};
  }
  // Sums over units before one.
  struct Facts {
    Extent extent;
    std::array<int, 2> time{};  // interpolated and analytic ones
    std::array<int, 2> memory{};
    void add(const Extent& more, const Origin& origin);
    void add(const Facts& more);
  };
  Source weakest(std::array<int, 2> Facts::*which, const UnitRange& range) const;
  // Of a distinct layer.
  struct Whole {
    std::array<UnitCost, 3> cost;  // by Recompute
    std::array<Bytes, 3> repeated;
    Facts facts;
    Bytes workspace;
  };
  std::vector<Whole> add_distinct(const std::vector<LayerCost>& units,
                                  const std::vector<int>& first);
  // Of the layers, those that the range has all units of; empty, or reversed, where there is none.
  UnitRange whole_layers(const UnitRange& range) const;
  // Units that are in one layer.
  Bytes repeated(int recompute, const UnitRange& part) const;

  bool in_ops_ = false;                          // some layers have several units
  std::array<std::vector<UnitCost>, 3> prefix_;  // by Recompute; [i] = layers [0, i)
  std::vector<Facts> facts_;                     // [i] = layers [0, i)
  std::array<RangeMaximum, 3> working_set_;      // by Recompute
  RangeMaximum workspace_;                       // empty when no unit has one
  std::vector<int> blocks_until_;                // by layer: blocks up to it
  std::vector<bool> is_block_;                   // by layer
  std::vector<int> layer_begin_;                 // by layer, then the number of units
  std::vector<int> layer_of_;                    // by unit, then the number of layers
  std::vector<int> cost_of_;                     // by unit: its distinct one; at the end one more
  // By distinct unit; sums over the units before it in its layer.
  std::array<std::vector<UnitCost>, 3> inner_;  // by Recompute
  std::vector<Facts> inner_facts_;
  std::array<std::vector<Bytes>, 3> inner_repeated_;  // by Recompute
  std::vector<Bytes> unit_workspace_;
  std::vector<Bytes> inside_input_;
  std::vector<Bytes> recompute_input_;
  std::vector<Origin> origins_;
};

inline UnitTable::Extent& UnitTable::Extent::operator+=(const Extent& other) {
  loss += other.loss;
  kept_loss += other.kept_loss;
  table_parameters += other.table_parameters;
  return *this;
}

inline UnitTable::Extent operator-(UnitTable::Extent a, const UnitTable::Extent& b) {
  a.loss -= b.loss;
  a.kept_loss -= b.kept_loss;
  a.table_parameters -= b.table_parameters;
  return a;
}

}  // namespace plait
