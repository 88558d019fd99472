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
    const int r = static_cast<int>(recompute);
    UnitCost cost;
    sums_.add_between(r, layer_of_[range.begin], layer_of_[range.end], cost);
    if (!in_ops_) return cost;
    inner_.add_between(r, cost_of_[range.begin], cost_of_[range.end], cost);
    // Recompute that begins inside a layer keeps what enters there.
    if (recompute == Recompute::full && range.begin < range.end)
      cost.saved += recompute_input(range.begin);
    return cost;
  }
  // The totals of cost(), for less.
  PassTime pass_time(const UnitRange& range, Recompute recompute) const {
    const int r = static_cast<int>(recompute);
    const PassTime time = sums_.pass_between(r, layer_of_[range.begin], layer_of_[range.end]);
    if (!in_ops_) return time;
    const PassTime more = inner_.pass_between(r, cost_of_[range.begin], cost_of_[range.end]);
    return {time.forward + more.forward, time.backward + more.backward};
  }
  // What the backward pass of a recomputed layer needs beside what is saved: the most that any
  // layer repeats, or the part of a layer at either end of the range.
  Bytes working_set(const UnitRange& range, Recompute recompute) const;
  // What the workspaces of the units' backward passes, measured or for weights kept in 4 bits, add
  // to all that is saved. When a layer runs backward, what later ones saved is gone; of models in
  // ops, whose search adds the largest one up by itself, all is taken to be there.
  Bytes workspace(const UnitRange& range, Recompute recompute) const;
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
    void add_since(const Pass& before, UnitCost& into) const {
      into.forward += forward - before.forward;
      into.backward += backward - before.backward;
      into.weight_gradient += weight_gradient - before.weight_gradient;
      into.recompute += recompute - before.recompute;
      into.forward_comm += forward_comm - before.forward_comm;
      into.backward_comm += backward_comm - before.backward_comm;
      into.network_forward += network_forward - before.network_forward;
      into.network_backward += network_backward - before.network_backward;
      into.saved += saved - before.saved;
    }
  };
  struct Parameters {
    double all = 0;
    double experts = 0;
    double trained = 0;
    double trained_experts = 0;
    void add(const UnitCost& unit);
    void add_since(const Parameters& before, UnitCost& into) const {
      into.parameters += all - before.all;
      into.expert_parameters += experts - before.experts;
      into.trained += trained - before.trained;
      into.trained_experts += trained_experts - before.trained_experts;
    }
  };
  struct Measured {
    Bytes held;
    Seconds optimizer;
    double optimizer_parameters = 0;
    void add(const UnitCost& unit);
    void add_since(const Measured& before, UnitCost& into) const {
      into.held += held - before.held;
      into.optimizer += optimizer - before.optimizer;
      into.optimizer_parameters += optimizer_parameters - before.optimizer_parameters;
    }
  };
  // [i] = of so many layers, or units, from the first one on.
  struct Sums {
    std::array<std::vector<Pass>, 3> passes;  // by Recompute
    std::vector<Parameters> parameters;
    std::array<std::vector<Measured>, 3> measured;  // empty when there is nothing
    // Of none, with room for so many.
    void begin(std::size_t count, bool from_profile);
    // The last one is of none again.
    void begin_anew();
    void append(const std::array<UnitCost, 3>& cost);
    void add_between(int recompute, int begin, int end, UnitCost& into) const {
      passes[recompute][end].add_since(passes[recompute][begin], into);
      parameters[end].add_since(parameters[begin], into);
      if (!measured[recompute].empty())
        measured[recompute][end].add_since(measured[recompute][begin], into);
    }
    PassTime pass_between(int recompute, int begin, int end) const {
      const Pass& a = passes[recompute][end];
      const Pass& b = passes[recompute][begin];
      return {(a.forward - b.forward) + (a.forward_comm - b.forward_comm),
              (a.backward - b.backward) + (a.weight_gradient - b.weight_gradient) +
                  (a.recompute - b.recompute) + (a.backward_comm - b.backward_comm)};
    }
  };
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
                                  const std::vector<int>& first, bool from_profile);
  // Of the layers, those that the range has all units of; empty, or reversed, where there is none.
  UnitRange whole_layers(const UnitRange& range) const;
  // Units that are in one layer.
  Bytes repeated(int recompute, const UnitRange& part) const;

  bool in_ops_ = false;                      // some layers have several units
  Sums sums_;                                // by layer
  std::vector<Facts> facts_;                 // [i] = layers [0, i)
  std::array<RangeMaximum, 3> working_set_;  // by Recompute
  // By Recompute: a layer's, and what is saved until its end; empty when no unit has one.
  std::array<RangeMaximum, 3> workspace_;
  std::vector<int> blocks_until_;  // by layer: blocks up to it
  std::vector<bool> is_block_;     // by layer
  std::vector<int> layer_begin_;   // by layer, then the number of units
  std::vector<int> layer_of_;      // by unit, then the number of layers
  std::vector<int> cost_of_;       // by unit: its distinct one; at the end one more
  // By distinct unit; sums over the units before it in its layer.
  Sums inner_;  // of models in ops
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
