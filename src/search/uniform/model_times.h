#pragma once

#include <compare>
#include <map>
#include <set>
#include <vector>

#include "cost/engine.h"
#include "search/uniform/node_mixes.h"

namespace plait {

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
  double total = 0;
};

// Times of whole models, each made once.
class ModelTimes {
 public:
  ModelTimes(const CostEngine& engine, const std::vector<NodeKind>& kinds);

  void want(const ReplicaCut& cut);
  // Makes what was wanted.
  void make(int threads);
  const ModelTime& at(const ReplicaCut& cut) const { return times_.at(cut); }

 private:
  ModelTime made(const ReplicaCut& cut) const;

  const CostEngine& engine_;
  const std::vector<NodeKind>& kinds_;
  std::map<ReplicaCut, ModelTime> times_;
  std::set<ReplicaCut> wanted_;
};

}  // namespace plait
