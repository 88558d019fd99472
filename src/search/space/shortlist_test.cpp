#include "search/space/shortlist.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plan/sample_problems.h"
#include "search/space/schedules.h"

namespace plait {
namespace {

struct Ground {
  Ground() : problem(samples::problem_of(samples::gpt(4, 1024, 16, 1024), cluster(), job())) {}
  static Cluster cluster() { return samples::cluster_of(samples::a100(), 1, 4); }
  static Job job() {
    Job job;
    job.global_batch = 8;
    return job;
  }
  // So many stages of one device each.
  Plan pipeline(int stages, int micro_batches) const {
    Plan plan;
    plan.micro_batches = micro_batches;
    const int units = problem.model.unit_count();
    for (int s = 0; s < stages; ++s) {
      Stage stage;
      stage.spans = {{.units = {units * s / stages, units * (s + 1) / stages}}};
      stage.devices = {DeviceId(s)};
      plan.stages.push_back(stage);
    }
    return plan;
  }
  Problem problem;
  CostEngine engine{problem};
};

TEST(Shortlist, KeepsTheBestPlansInOrderAndOnce) {
  const Ground ground;
  Shortlist found(ground.engine, 2);
  EXPECT_EQ(found.best(), Seconds(HUGE_VAL));
  for (const int stages : {1, 2, 4, 2, 4, 1}) found.offer(ground.pipeline(stages, 8));
  EXPECT_EQ(found.evaluations(), 6);
  ASSERT_EQ(found.plans().size(), 2u);
  EXPECT_LT(found.plans()[0].cost.step, found.plans()[1].cost.step);
  EXPECT_EQ(found.best(), found.plans()[0].cost.step);
  EXPECT_EQ(found.worst_kept(), found.plans()[1].cost.step);
  EXPECT_FALSE(found.offer(found.plans()[0].plan));
}

TEST(Shortlist, RemembersThePlanThatNearlyFits) {
  Ground ground;
  ground.problem.cluster.device_types[0].memory = Bytes(1e9);
  Shortlist found(ground.engine, 2);
  EXPECT_FALSE(found.offer(ground.pipeline(1, 8)));
  EXPECT_FALSE(found.offer(ground.pipeline(4, 8)));
  EXPECT_TRUE(found.empty());
  ASSERT_TRUE(found.nearest());
  EXPECT_EQ(found.nearest()->plan.stage_count(), 4);
  EXPECT_GT(excess_of(found.nearest()->cost), Bytes(0));
}

TEST(Shortlist, OfManyTasksIsThatOfOne) {
  const Ground ground;
  Shortlist one(ground.engine, 2);
  Shortlist first(ground.engine, 2);
  Shortlist second(ground.engine, 2);
  for (const int m : {1, 2, 4, 8}) {
    one.offer(ground.pipeline(2, m));
    (m < 4 ? first : second).offer(ground.pipeline(2, m));
  }
  first.merge(second);
  ASSERT_EQ(first.plans().size(), one.plans().size());
  for (std::size_t i = 0; i < one.plans().size(); ++i)
    EXPECT_EQ(first.plans()[i].plan, one.plans()[i].plan);
  EXPECT_EQ(first.evaluations(), one.evaluations());
  EXPECT_EQ(first.without_counts().evaluations(), 0);
}

TEST(Schedules, CutStagesIntoChunksOfTheSameUnits) {
  const Ground ground;
  // 6 units on 2 stages of 2 chunks, interleaved: chunks of 2, 1 | 2, 1 units in pipeline order
  // stage 0, stage 1, stage 0, stage 1.
  const std::vector<Plan> plans = in_chunks(ground.pipeline(2, 8), Schedule::interleaved, 2);
  ASSERT_EQ(plans.size(), 1u);
  const Plan& plan = plans.front();
  ASSERT_EQ(plan.stages[0].spans.size(), 2u);
  EXPECT_EQ(plan.stages[0].spans[0].units, (UnitRange{0, 2}));
  EXPECT_EQ(plan.stages[1].spans[0].units, (UnitRange{2, 4}));
  EXPECT_EQ(plan.stages[0].spans[1].units, (UnitRange{4, 5}));
  EXPECT_EQ(plan.stages[1].spans[1].units, (UnitRange{5, 6}));
  EXPECT_TRUE(in_chunks(ground.pipeline(4, 8), Schedule::interleaved, 2).empty());
}

TEST(Schedules, GiveEveryChunkItsPartOfWhatIsRecomputed) {
  const Ground ground;
  // Units 0 and 1 of 3 are recomputed: one of the two in the first chunk, the one of the second.
  Plan plan = ground.pipeline(2, 8);
  std::vector<Span>& spans = plan.stages[0].spans;
  spans.push_back(spans[0]);
  spans[0].recompute = Recompute::full;
  spans[0].units.end = spans[1].units.begin = 2;
  const std::vector<Plan> plans = in_chunks(plan, Schedule::interleaved, 2);
  ASSERT_EQ(plans.size(), 1u);
  const std::vector<Span>& own = plans.front().stages[0].spans;
  ASSERT_EQ(own.size(), 3u);
  EXPECT_EQ(own[0].units, (UnitRange{0, 1}));
  EXPECT_EQ(own[0].recompute, Recompute::full);
  EXPECT_EQ(own[1].units, (UnitRange{1, 2}));
  EXPECT_EQ(own[1].recompute, Recompute::none);
  EXPECT_EQ(own[2].units, (UnitRange{4, 5}));
  EXPECT_EQ(own[2].recompute, Recompute::full);
  EXPECT_EQ(own[2].chunk, 1);
}

TEST(Schedules, TakeStagesOfOneTensorDegreeOnly) {
  const Ground ground;
  Plan plan = ground.pipeline(2, 8);
  Span& whole = plan.stages[0].spans[0];
  Span rest = whole;
  rest.units.begin = whole.units.end = 1;
  rest.tensor *= 2;
  plan.stages[0].spans.push_back(rest);
  EXPECT_DEATH(in_chunks(plan, Schedule::interleaved, 2), "does not hold");
}

TEST(Schedules, ArePlainUnlessOneIsPinned) {
  const Ground ground;
  const Plan plain = ground.pipeline(2, 8);
  EXPECT_EQ(plans_for(plain, {}), std::vector<Plan>{plain});
  EXPECT_EQ(searched_schedule({.schedule = Schedule::zb_v}), Schedule::one_f_one_b);
  for (const Plan& plan : plans_for(plain, {.schedule = Schedule::zb_h1}))
    EXPECT_EQ(plan.schedule, Schedule::zb_h1);
}

}  // namespace
}  // namespace plait
