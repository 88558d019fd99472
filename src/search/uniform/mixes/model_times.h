#pragma once

#include <compare>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "cost/engine.h"
#include "search/uniform/mixes/node_mixes.h"

namespace plait {

class PassingTables;

// One way to cut a replica of the whole model, on one kind of node.
struct ReplicaCut {
  int kind = 0;  // of node
  int tensor = 1;
  int context = 1;
  int expert = 1;
  int data = 1;  // 1 where nothing of a pass depends on it
  int micro_batch = 1;
  bool sequence_parallel = false;
  ZeroStage zero = ZeroStage::off;  // off where nothing of a pass depends on it
  Recompute recompute = Recompute::none;
  friend auto operator<=>(const ReplicaCut&, const ReplicaCut&) = default;
};

// What one micro-batch takes on it: forward and backward, where groups stand best.
struct ModelTime {
  std::vector<double> by_unit;
  std::vector<double> forward;  // of that, by unit
  std::vector<double> way;      // without the gradients of weights, on the fastest replica
  double total = 0;
};

// What a stage's replicas are, as far as it matters to what follows the pipeline.
struct ReplicaCopies {
  int kind = 0;  // of node
  int tensor = 1;
  int context = 1;
  int expert = 1;
  int data = 1;               // 0: nothing is known of what follows
  double of_update = 1;       // the part of the time of an update on these replicas that counts
  bool network_only = false;  // of collectives: nodes are not taken as they come
  bool sequence_parallel = false;
  ZeroStage zero = ZeroStage::off;
  friend auto operator<=>(const ReplicaCopies&, const ReplicaCopies&) = default;
};

// Seconds once a step, by unit and without latencies, on nodes of that kind: to sum gradients, to
// gather weights and to update them. All zero where they are not such sums.
struct FinishTimes {
  std::vector<double> gradients;
  std::vector<double> weights;
  std::vector<double> update;
};

// Times of whole models, each made once.
class ModelTimes {
 public:
  ModelTimes(const CostEngine& engine, const std::vector<NodeKind>& kinds);

  void want(const ReplicaCut& cut);
  // Makes what was wanted; false where it was stopped before it had all of that.
  bool make(int threads, const std::function<bool()>& stop);
  const ModelTime& at(const ReplicaCut& cut) const { return times_.at(cut); }
  // `micro_batch`: samples of a replica, any.
  void want(const ReplicaCopies& copies, int micro_batch);
  const FinishTimes& at(const ReplicaCopies& copies) const { return finishes_.at(copies); }

 private:
  bool make_times(int threads, const std::function<bool()>& stop);
  SpanFrame frame_of(const auto& replicas, const PlanSettings& settings,
                     PassingTables& tables) const;
  ModelTime made(const ReplicaCut& cut, PassingTables& tables) const;
  FinishTimes made(const ReplicaCopies& copies, int micro_batch, PassingTables& tables) const;

  const CostEngine& engine_;
  const std::vector<NodeKind>& kinds_;
  std::map<ReplicaCut, ModelTime> times_;
  std::set<ReplicaCut> wanted_;
  std::map<ReplicaCopies, FinishTimes> finishes_;
  std::map<ReplicaCopies, int> wanted_copies_;  // with samples of a replica
};

}  // namespace plait
