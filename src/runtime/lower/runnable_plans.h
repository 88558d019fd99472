#pragma once

// Plans that the runtime can execute, of every shape, for small models: for tests.

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "model/op_cuts.h"
#include "plan/check.h"
#include "plan/sample_plans.h"
#include "runtime/lower/layout.h"
#include "runtime/lower/tiny_models.h"

namespace plait::samples {

inline Problem tiny_problem(Model model, Optimizer optimizer) {
  Problem problem;
  problem.model = std::move(model);
  problem.cluster = sample_cluster(1, 1);
  problem.job.global_batch = 24;
  problem.job.precision = Precision::fp32;
  problem.job.optimizer = optimizer;
  return problem;
}

// The whole model and batch at once on one device.
inline Plan lone_plan(const Problem& problem) {
  Plan plan;
  Stage stage;
  stage.spans = {{.units = {0, problem.model.unit_count()}}};
  stage.devices = {DeviceId{0}};
  plan.stages = {stage};
  return plan;
}

class RunnablePlans {
 public:
  explicit RunnablePlans(unsigned seed) : random_(seed) {}

  // The next plan of at most `ranks` ranks that can be run; counts those that cannot.
  Plan next(const Problem& problem, int ranks) {
    for (;;) {
      const std::optional<Plan> plan = draw(problem, ranks);
      if (plan && check_plan(problem, *plan).empty() &&
          runtime::unsupported_reason(problem, *plan).empty())
        return *plan;
      ++refused_;
    }
  }
  // The same, with ops that are cut in another way than the usual one.
  Plan next_with_splits(const Problem& problem, int ranks) {
    for (;;) {
      Plan plan = next(problem, ranks);
      bool any = false;
      for (Stage& stage : plan.stages) any |= cut_otherwise(problem.model, stage);
      if (any && check_plan(problem, plan).empty() &&
          runtime::unsupported_reason(problem, plan).empty())
        return plan;
      ++refused_;
    }
  }
  int refused() const { return refused_; }

  int below(int limit) { return std::uniform_int_distribution<int>(0, limit - 1)(random_); }

 private:
  std::optional<Plan> draw(const Problem& problem, int ranks) {
    Plan plan;
    plan.schedule = static_cast<Schedule>(below(3));
    const bool interleaved = plan.schedule == Schedule::interleaved;
    const int stages = interleaved ? 2 : 1 + below(3);
    const int chunks = interleaved ? 2 : 1;
    const int choices[] = {1, 2, 3, 4, 6};
    plan.micro_batches = interleaved ? 2 * (1 + below(3)) : choices[below(5)];
    plan.zero = below(2) == 0 ? ZeroStage::off : ZeroStage::optimizer;
    plan.sequence_parallel = below(2) == 0;
    if (problem.model.unit_count() < 2 * stages * chunks) return std::nullopt;
    std::vector<int> ids(ranks);
    for (int i = 0; i < ranks; ++i) ids[i] = i;
    if (below(2) == 0) std::shuffle(ids.begin(), ids.end(), random_);
    int used = 0;
    for (int s = 0; s < stages; ++s) {
      Stage stage;
      const int size = 1 << below(3);
      if (used + size > ranks) return std::nullopt;
      for (int d = 0; d < size; ++d) stage.devices.push_back(DeviceId{ids[used++]});
      plan.stages.push_back(stage);
    }
    place(plan, problem.model.unit_count(), chunks);
    for (Stage& stage : plan.stages)
      if (below(3) == 0) give_shares(stage, problem.job.global_batch / plan.micro_batches);
    return plan;
  }

  // Half of the ops that can be; whether any was.
  bool cut_otherwise(const Model& model, Stage& stage) {
    std::vector<Span> spans;
    bool any = false;
    for (const Span& span : stage.spans)
      for (int u = span.units.begin; u < span.units.end; ++u) {
        Span one = span;
        one.units = {u, u + 1};
        const int ways = span.tensor > 1 ? ways_to_cut(model.unit(u)) : 1;
        if (ways > 1) one.split = below(ways);
        any = any || one.split > 0;
        spans.push_back(one);
      }
    stage.spans = std::move(spans);
    join_alike(stage);
    return any;
  }

  // Uneven chunks of one or two spans.
  void place(Plan& plan, int units, int chunks) {
    const int stages = plan.stage_count();
    std::vector<int> cuts{0, units};
    while (static_cast<int>(cuts.size()) < stages * chunks + 1) {
      const int cut = 1 + below(units - 1);
      if (std::find(cuts.begin(), cuts.end(), cut) == cuts.end()) cuts.push_back(cut);
    }
    std::sort(cuts.begin(), cuts.end());
    for (int s = 0; s < stages; ++s)
      for (int c = 0; c < chunks; ++c) {
        const int position = chunk_position(plan.schedule, stages, s, c);
        UnitRange left{cuts[position], cuts[position + 1]};
        while (left.size() > 0) {
          const bool split = left.size() > 1 && below(3) == 0;
          UnitRange units_of_span{left.begin,
                                  split ? left.begin + 1 + below(left.size() - 1) : left.end};
          plan.stages[s].spans.push_back(span_of(plan.stages[s], units_of_span, c));
          left.begin = units_of_span.end;
        }
      }
  }

  Span span_of(const Stage& stage, UnitRange units, int chunk) {
    Span span{.units = units, .chunk = chunk};
    const int size = static_cast<int>(stage.devices.size());
    const bool first = stage.spans.empty();
    span.tensor = !first && below(3) > 0 ? stage.spans[0].tensor : 1 << below(3);
    if (size % span.tensor != 0) span.tensor = size;
    span.data = size / span.tensor;
    span.recompute = static_cast<Recompute>(below(3));
    return span;
  }

  void give_shares(Stage& stage, int micro_batch) {
    const int data = stage.spans[0].data;
    for (const Span& span : stage.spans)
      if (span.data != data) return;
    if (micro_batch < data) return;
    stage.shares.assign(data, 1);
    for (int left = micro_batch - data; left > 0; --left) ++stage.shares[below(data)];
  }

  std::mt19937 random_;
  int refused_ = 0;
};

}  // namespace plait::samples
