#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "search/uniform/layout_evaluation.h"

namespace plait {

// What people call a layout: tensor, stages, context, expert.
using Shape = std::tuple<int, int, int, int>;
Shape shape_of(const Plan& plan);

// Plans whose layers may be moved: of each kind the one that promises most. Those of one stage, and
// those that recompute some layers, are left out.
class NearPlans {
 public:
  void keep(const NearPlan& near);
  std::vector<NearPlan> all() const;

 private:
  // What may be pinned: the shape, schedule, chunks, micro-batches, recompute and ZeRO stage; and
  // what may not: the first device of each stage, by which orders of hosts are told apart.
  using Kind = std::tuple<Shape, Schedule, int, int, Recompute, ZeroStage, std::vector<DeviceId>>;
  std::map<Kind, NearPlan> kept_;
};

}  // namespace plait
