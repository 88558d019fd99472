#include "search/bound/proof.h"

#include <gtest/gtest.h>

#include "plan/sample_problems.h"
#include "search/space/shortlist.h"

namespace plait {
namespace {

// Four nodes of 4 A100 with a slow network; a GPT of 16 layers.
Problem sixteen_devices() {
  Cluster cluster = samples::cluster_of(samples::a100(), 4, 4);
  for (Node& node : cluster.nodes) node.uplink.bandwidth = BytesPerSecond(3e9);
  return samples::problem_of(samples::gpt(16, 1024, 16, 1024), cluster, {.global_batch = 32});
}

SearchResult planned(const Problem& problem, const Pins& pins) {
  SearchContext context{problem, {.keep = 1}, {}, {}, {}};
  context.options.pins = pins;
  return run_search(planners().front(), context);
}

TEST(Proof, HoldsForEveryScheduleThatWasFreeToChoose) {
  const Problem problem = sixteen_devices();
  const SearchResult free = planned(problem, {});
  ASSERT_TRUE(free.lower_bound);
  EXPECT_TRUE(free.bounds_every_plan);
  for (const Schedule schedule : {Schedule::one_f_one_b, Schedule::interleaved, Schedule::zb_h1,
                                  Schedule::zb_2p, Schedule::zb_v}) {
    const SearchResult pinned = planned(problem, {.schedule = schedule});
    ASSERT_FALSE(pinned.plans.empty());
    EXPECT_LE(*free.lower_bound, pinned.plans.front().cost.step);
  }
}

// On so few devices all plans under 1F1B are looked at, which proves nothing of other schedules.
// Two fast devices and six slow ones, of which pipelines that put weight gradients aside make most.
TEST(Proof, HoldsForEveryScheduleOnFewDevices) {
  Cluster cluster = samples::cluster_of(samples::a100(), 4, 2);
  DeviceType slow = samples::a100();
  slow.name = "slow";
  for (FlopsPerSecond& peak : slow.peak) peak = 0.3 * peak;
  cluster.device_types.push_back(slow);
  for (int d = 2; d < 8; ++d) cluster.devices[d].type = 1;
  for (Node& node : cluster.nodes) node.uplink.bandwidth = BytesPerSecond(3e9);
  const Problem problem =
      samples::problem_of(samples::gpt(14, 1024, 16, 1024), cluster, {.global_batch = 16});
  const SearchResult free = planned(problem, {});
  ASSERT_TRUE(free.lower_bound);
  EXPECT_TRUE(free.bounds_every_plan);
  for (const Schedule schedule : {Schedule::zb_h1, Schedule::zb_2p, Schedule::zb_v}) {
    const SearchResult pinned = planned(problem, {.schedule = schedule});
    ASSERT_FALSE(pinned.plans.empty());
    EXPECT_LE(*free.lower_bound, pinned.plans.front().cost.step);
  }
}

// Moves put devices wherever they are best, also where the planner's own bound does not see them.
TEST(Proof, OfOneScheduleIsThatOfEveryPlanWhereMovesWereMade) {
  const SearchResult pinned = planned(sixteen_devices(), {.schedule = Schedule::one_f_one_b});
  ASSERT_TRUE(pinned.lower_bound);
  EXPECT_TRUE(pinned.bounds_every_plan);
  EXPECT_LE(*pinned.lower_bound, pinned.plans.front().cost.step);
}

TEST(Proof, IsThePlannersWhereItsWholeSpaceIsSearched) {
  const Problem problem =
      samples::problem_of(samples::gpt(8, 1024, 16, 1024),
                          samples::cluster_of(samples::a100(), 4, 4), {.global_batch = 16});
  const SearchResult pinned = planned(problem, {.schedule = Schedule::one_f_one_b});
  ASSERT_TRUE(pinned.lower_bound);
  EXPECT_FALSE(pinned.bounds_every_plan);
}

// A plan below the planner's bound takes the proof away: what is left holds for every plan.
TEST(Proof, IsNeverAboveAPlanThatIsKnown) {
  const Problem problem = sixteen_devices();
  const CostEngine engine(problem);
  SearchContext context{problem, {.keep = 1}, {}, {}, {}, &engine};
  context.options.pins.schedule = Schedule::one_f_one_b;
  SearchResult result = planned(problem, context.options.pins);
  result.bounds_every_plan = false;
  result.lower_bound = 1.1 * result.plans.front().cost.step;
  keep_what_is_proven(context, engine, result);
  ASSERT_TRUE(result.lower_bound);
  EXPECT_TRUE(result.bounds_every_plan);
  EXPECT_LE(*result.lower_bound, result.plans.front().cost.step);
}

// Two stages on equal devices, cut alike or not.
TEST(RegularPlans, AreCutAlike) {
  Plan plan;
  Stage stage;
  stage.spans = {{.units = {0, 9}, .tensor = 2, .data = 4}};
  plan.stages = {stage, stage};
  plan.stages[1].spans[0].units = {9, 18};
  EXPECT_TRUE(is_regular(plan));
  plan.stages[1].spans[0].tensor = 4;
  plan.stages[1].spans[0].data = 2;
  EXPECT_FALSE(is_regular(plan));
  plan.stages[1].spans[0] = plan.stages[0].spans[0];
  plan.stages[1].shares = {3, 2, 2, 1};
  EXPECT_FALSE(is_regular(plan));
}

}  // namespace
}  // namespace plait
