#pragma once

#include <cstddef>
#include <unordered_map>

#include "cost/engine.h"

namespace plait {

// A plan in which all stages are alike: devices in order, the same number of layers in each stage,
// the embedding with the first of them and the head with the last.
struct UniformPlan {
  int tensor = 1;
  int data = 1;
  int pipeline = 1;  // divides the layers
  int micro_batches = 1;
  int context = 1;
  int expert = 1;
  ZeroStage zero = ZeroStage::off;
  bool sequence_parallel = false;
  Recompute recompute = Recompute::none;
  Schedule schedule = Schedule::one_f_one_b;  // or gpipe
  friend auto operator<=>(const UniformPlan&, const UniformPlan&) = default;
};

Plan plan_of(const Problem& problem, const UniformPlan& uniform);

struct QuickEstimate {
  Seconds step;
  Bytes peak_memory;
  bool fits = false;
};

// CostEngine::estimate() of uniform plans in constant time: first, last and one middle stage are
// costed, whatever the number of stages. Unit costs and links are kept for each (tensor, data,
// micro-batches and switches); pipeline, recompute and schedule need nothing new. About two million
// plans a second (bench/cost_bench.cpp).
//
// 1F1B's closed form (cost/simulator.h) takes a maximum over the stages. Of equal middle stages,
//   (m - k) (f + b) + (k - 1) max(f, b)          falls with k = min(m, p - s), so the last counts;
//   (m - k) (f + b) + round trip after stage s   grows towards the first, so the first with k < m
//                                                does.
// Activations and what follows the pipeline are the largest on the first of them, too.
//
// Equal to the engine within rounding (uniform_test.cpp). Not thread-safe: one for each thread.
class UniformCost {
 public:
  // Keeps a reference to the engine.
  explicit UniformCost(const CostEngine& engine);

  // Whether the problem has the regularity that the formula needs: nodes alike, of one device type
  // and in one zone, layers of one kind between an input and an output unit, and a framework that
  // does not wait for its sends.
  bool regular() const { return regular_; }

  // The plan must pass check_plan(). Falls back on the engine where the problem is not regular, or
  // where the stages do not fill whole nodes or equal parts of them.
  QuickEstimate evaluate(const UniformPlan& plan);

 private:
  // Devices and links that stages of one shape use.
  struct Shape {
    SpanFrame frame;
    Seconds send_inside;  // the next stage is on the same node
    Seconds send_across;
    Seconds tied_inside;  // the last stage is on the node of the first
    Seconds tied_across;
  };
  struct Hash {
    std::size_t operator()(const UniformPlan& plan) const;
  };
  struct StageTimes {
    Seconds forward;
    Seconds backward;
    Seconds once;  // gradient sync and optimizer
  };

  bool is_regular() const;
  bool fills_nodes(const UniformPlan& plan) const;
  const Shape& shape_of(const UniformPlan& plan);
  Seconds tied_time(const UniformPlan& plan, int other) const;
  static StageTimes times_of(const Shape& shape, const UnitRange& units, Recompute recompute);
  // Boundaries from the one before stage `from` to the last that stay inside a node.
  int inside_boundaries(const UniformPlan& plan, int from) const;
  Seconds pipeline_time(const UniformPlan& plan, const Shape& shape, const StageTimes& first,
                        const StageTimes& middle, const StageTimes& last) const;
  void add_memory(const UniformPlan& plan, const Shape& shape, int stage, const UnitRange& units,
                  QuickEstimate& estimate) const;

  const CostEngine& engine_;
  const Problem& problem_;
  int per_node_ = 1;
  int layers_ = 0;
  bool regular_ = false;
  double tied_parameters_ = 0;  // of the last stage's second copy
  std::unordered_map<UniformPlan, Shape, Hash> shapes_;
};

}  // namespace plait
