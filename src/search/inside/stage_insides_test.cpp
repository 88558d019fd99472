#include "search/inside/stage_insides.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "model/op_cuts.h"
#include "plan/sample_problems.h"
#include "search/inside/inside_pipelines.h"

namespace plait {
namespace {

Problem in_ops(int layers, int devices, double memory_share) {
  Job job;
  job.global_batch = 8;
  job.attention = AttentionKernel::plain;
  Problem problem = samples::problem_of(samples::gpt(layers, 512, 8, 512),
                                        samples::cluster_of(samples::a100(), 1, devices), job);
  problem.model = at_op_granularity(problem.model);
  DeviceType& type = problem.cluster.device_types.front();
  type.memory = memory_share * type.memory;
  return problem;
}

Plan one_stage(const std::vector<Span>& spans, int devices, int micro_batches) {
  Plan plan;
  plan.micro_batches = micro_batches;
  Stage stage{spans, {}, {}};
  for (int d = 0; d < devices; ++d) stage.devices.push_back(DeviceId(d));
  join_alike(stage);
  plan.stages.push_back(stage);
  return plan;
}

// The first of four stages, of six ops, each of which is run in one of several ways: all of them,
// one by one.
class EveryChoice {
 public:
  EveryChoice(const Problem& problem, int devices, int micro_batches, std::vector<Span> ways)
      : problem_(problem),
        engine_(problem),
        devices_(devices),
        micro_batches_(micro_batches),
        ways_(std::move(ways)) {}

  static constexpr UnitRange kUnits{4, 10};

  static constexpr int kAfter = 3;  // stages, so that several micro-batches are in flight

  StageCost cost(const std::vector<int>& choice) const {
    std::vector<Span> spans;
    for (int i = 0; i < kUnits.size(); ++i) {
      spans.push_back(ways_[choice[i]]);
      spans.back().units = {kUnits.begin + i, kUnits.begin + i + 1};
    }
    const TableSource tables = [&](const ReplicaShape& shape) -> const UnitTable& {
      return engine_.table(shape);
    };
    Plan plan = one_stage(spans, devices_, micro_batches_);
    plan.stages.resize(1 + kAfter);
    return stage_cost(problem_, plan, 0, tables).cost;
  }
  double load(const StageCost& cost) const {
    return (micro_batches_ * (cost.forward_total() + cost.backward_total()) + cost.gradient_sync +
            cost.optimizer)
        .value;
  }
  template <typename Take>
  void visit(const Take& take) const {
    std::vector<int> choice(kUnits.size(), 0);
    for (std::size_t at = 0; at < choice.size();) {
      if (may(choice)) take(cost(choice));
      for (at = 0; at < choice.size() && ++choice[at] == static_cast<int>(ways_.size()); ++at)
        choice[at] = 0;
    }
  }

 private:
  // Whether the units can be cut in these ways.
  bool may(const std::vector<int>& choice) const {
    for (int i = 0; i < kUnits.size(); ++i)
      if (ways_[choice[i]].split >= ways_to_cut(problem_.model.unit(kUnits.begin + i)))
        return false;
    return true;
  }

  const Problem& problem_;
  CostEngine engine_;
  int devices_;
  int micro_batches_;
  std::vector<Span> ways_;
};

struct Compared {
  int fits = 0;
  int bound_by_memory = 0;
};

// With as much memory as the thriftiest choice needs, up to what the fastest one does.
Compared compare(int devices, int micro_batches, const std::vector<Span>& ways, double tolerance,
                 const Pins& pins = {}) {
  Problem problem = in_ops(2, devices, 1);
  Bytes least = problem.cluster.device_types.front().memory;
  Bytes most;
  double fastest = HUGE_VAL;
  const EveryChoice sizes(problem, devices, micro_batches, ways);
  sizes.visit([&](const StageCost& cost) {
    least = std::min(least, cost.peak_memory());
    most = std::max(most, cost.peak_memory());
    fastest = std::min(fastest, sizes.load(cost));
  });
  Compared out;
  for (int share = 0; share <= 12; ++share) {
    problem.job.memory_limit = least + (share - 0.5) / 12.0 * (most - least);
    const EveryChoice all(problem, devices, micro_batches, ways);
    double best = HUGE_VAL;
    all.visit([&](const StageCost& cost) {
      if (cost.spare() >= Bytes(0)) best = std::min(best, all.load(cost));
    });
    Target target;
    target.recomputes = {Recompute::none, Recompute::full};
    if (std::ranges::none_of(ways, [](const Span& way) { return way.split > 0; }))
      target.split_choices = SplitChoices::none;
    const Space space(problem, pins, target);
    const CostEngine engine(problem);
    StageInsides insides(space, engine, {.micro_batches = micro_batches});
    const auto* inside = insides.best({0, 0, devices}, EveryChoice::kUnits, EveryChoice::kAfter, 0);
    EXPECT_EQ(inside != nullptr, best < HUGE_VAL) << share;
    if (inside == nullptr || !(best < HUGE_VAL)) continue;
    ++out.fits;
    const double load = (micro_batches * inside->time + inside->finish).value;
    EXPECT_GE(load, best * (1 - 1e-9)) << share;
    EXPECT_LE(load, best * (1 + tolerance)) << share;
    if (best > fastest * (1 + 1e-9)) ++out.bound_by_memory;
  }
  return out;
}

TEST(StageInsides, EqualEveryChoiceOfRecompute) {
  const Compared seen = compare(1, 4, {{}, {.recompute = Recompute::full}}, 1e-9);
  EXPECT_GT(seen.fits, 8);
  EXPECT_GT(seen.bound_by_memory, 4);
}

// What is done once a step adds up from op to op but for latencies, which is why a little is
// allowed.
TEST(StageInsides, EqualEveryChoiceOfDegreesAndRecompute) {
  const Compared seen = compare(2, 2,
                                {{.tensor = 2, .data = 1},
                                 {.tensor = 2, .data = 1, .recompute = Recompute::full},
                                 {.tensor = 1, .data = 2},
                                 {.tensor = 1, .data = 2, .recompute = Recompute::full}},
                                5e-3);
  EXPECT_GT(seen.fits, 8);
  EXPECT_GT(seen.bound_by_memory, 4);
}

// Less of their input is kept when products are cut by input features, for more communication.
TEST(StageInsides, EqualEveryChoiceOfSplitsAndRecompute) {
  const Compared seen =
      compare(2, 4,
              {{.tensor = 2, .data = 1},
               {.tensor = 2, .data = 1, .recompute = Recompute::full},
               {.tensor = 2, .data = 1, .split = 1},
               {.tensor = 2, .data = 1, .split = 1, .recompute = Recompute::full}},
              1e-9, {.tensor = 2});
  EXPECT_GT(seen.fits, 8);
  EXPECT_GT(seen.bound_by_memory, 4);
}

// Insides hold what the engine says of them, in every mixture of degrees.
TEST(StageInsides, AreCostedByTheEngine) {
  for (const double share : {1.0, 0.02, 0.012}) {
    const Problem problem = in_ops(4, 4, share);
    const CostEngine engine(problem);
    const Space space(problem, {});
    for (const int m : {1, 2, 4}) {
      StageInsides insides(space, engine, {.micro_batches = m});
      const UnitRange all{0, problem.model.unit_count()};
      const auto* inside = insides.best({0, 0, 4}, all, 0, 0);
      if (inside == nullptr) continue;
      const Estimate cost =
          engine.estimate(one_stage(insides.spans({0, 0, 4}, all, *inside), 4, m));
      EXPECT_TRUE(cost.fits);
      EXPECT_NEAR((cost.stages[0].forward_total() + cost.stages[0].backward_total()).value,
                  inside->time.value, 1e-9);
    }
  }
}

}  // namespace
}  // namespace plait
