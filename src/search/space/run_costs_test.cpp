#include "search/space/run_costs.h"

#include <gtest/gtest.h>

#include "cost/engine.h"
#include "plan/sample_problems.h"

namespace plait {
namespace {

// Two A100, one replica each, four micro-batches of two samples.
struct Ground {
  Ground()
      : problem(samples::problem_of(samples::gpt(6, 1024, 16, 1024),
                                    samples::cluster_of(samples::a100(), 1, 2), job())),
        engine(problem),
        space(problem, {}),
        tables(
            [this](const ReplicaShape& shape) -> const UnitTable& { return engine.table(shape); }),
        costs(space, {Schedule::one_f_one_b, settings().micro_batches},
              SpanFrame(problem, settings(), devices, 1, 2, {}, tables)) {}

  static Job job() {
    Job job;
    job.global_batch = 8;
    return job;
  }
  static PlanSettings settings() {
    PlanSettings settings;
    settings.micro_batches = 2;
    return settings;
  }

  const std::vector<DeviceId> devices{DeviceId{0}, DeviceId{1}};
  Problem problem;
  CostEngine engine;
  Space space;
  TableSource tables;
  RunCosts costs;
};

TEST(RunCosts, UnitsAloneNeverExceedTheirRun) {
  // alone() is a lower bound that adds up: it may be summed over any cut of a run.
  Ground ground;
  const int units = ground.problem.model.unit_count();
  for (int begin = 0; begin < units; ++begin)
    for (int end = begin + 1; end <= units; ++end) {
      Seconds forward, backward;
      for (int u = begin; u < end; ++u) {
        const StageTime one = ground.costs.alone({u, u + 1});
        forward += one.forward;
        backward += one.backward;
      }
      const StageTime whole = ground.costs.cost({begin, end}, UnitsRecomputed{});
      EXPECT_LE(forward.value, whole.forward.value * (1 + 1e-12)) << begin << " to " << end;
      EXPECT_LE(backward.value, whole.backward.value * (1 + 1e-12)) << begin << " to " << end;
    }
}

TEST(RunCosts, TheFastestChoiceThatFitsIsTaken) {
  Ground ground;
  const UnitRange all{0, ground.problem.model.unit_count()};
  const auto chosen = ground.costs.choose(all, 0);
  ASSERT_TRUE(chosen);
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    if (!ground.costs.fits(all, UnitsRecomputed::all(recompute), 0)) continue;
    const RunCosts::Choice other = ground.costs.cost(all, UnitsRecomputed::all(recompute));
    EXPECT_LE((chosen->forward + chosen->backward).value,
              (other.forward + other.backward).value * (1 + 1e-12));
  }
}

}  // namespace
}  // namespace plait
