#include "app/request/objective.h"

#include <gtest/gtest.h>

#include "app/plan/sample_requests.h"
#include "plan/sample_plans.h"

namespace plait {
namespace {

using samples::complaint;

// A front of a cheap slow point and a dear fast one: 4 s at $1 a second, 1 s at $8 a second.
std::vector<MixPoint> front() {
  std::vector<MixPoint> points(2);
  points[0].best.cost.step = Seconds(4);
  points[0].rent = UsdPerSecond(1);
  points[1].best.cost.step = Seconds(1);
  points[1].rent = UsdPerSecond(8);
  return points;
}

Seconds chosen_step(const Objective& objective) {
  return choose(objective, samples::sample_problem(), front()).points.front().step();
}

TEST(Objective, TheMetricChoosesFromTheFront) {
  EXPECT_EQ(chosen_step({.metric = Metric::time}), Seconds(1));
  EXPECT_EQ(chosen_step({.metric = Metric::cost}), Seconds(4));
  // $4 x 4 s = 16 against $8 x 1 s = 8.
  EXPECT_EQ(chosen_step({.metric = Metric::cost_time}), Seconds(1));
}

TEST(Objective, ADeadlineLeavesThePriceOpenAndABudgetTheTime) {
  // 10 steps: 40 s for $40, 10 s for $80.
  EXPECT_EQ(chosen_step({.deadline = Seconds(50), .steps = 10}), Seconds(4));
  EXPECT_EQ(chosen_step({.deadline = Seconds(20), .steps = 10}), Seconds(1));
  EXPECT_EQ(chosen_step({.budget = Usd(90), .steps = 10}), Seconds(1));
  EXPECT_EQ(chosen_step({.budget = Usd(50), .steps = 10}), Seconds(4));
}

TEST(Objective, GoodputLeavesLessOfADeadline) {
  // 10 steps of 4 s are 40 s, or 80 s when half of the time counts: then only 1 s a step is enough.
  EXPECT_EQ(chosen_step({.deadline = Seconds(50), .steps = 10, .goodput = 0.5}), Seconds(1));
}

TEST(Objective, MissedLimitsSayByHowMuch) {
  const Chosen late =
      choose({.deadline = Seconds(8), .steps = 10}, samples::sample_problem(), front());
  EXPECT_TRUE(late.points.empty());
  // 10 s are 2 s, or a quarter, more than 8 s.
  EXPECT_EQ(late.missed,
            "the fastest training takes 10.00 s, 2.00 s (25.0 %) more than the deadline of 8.00 s");
  const Chosen both = choose({.deadline = Seconds(20), .budget = Usd(50), .steps = 10},
                             samples::sample_problem(), front());
  EXPECT_TRUE(both.missed.starts_with("deadline and budget cannot be met together"));
}

TEST(Objective, TokensAreRoundedUpToSteps) {
  // 16 samples of 1,024 tokens are 16,384 a step.
  EXPECT_EQ(length_of({.tokens = 16'385}, samples::sample_problem())->steps, 2);
  EXPECT_FALSE(length_of({}, samples::sample_problem()));
  EXPECT_EQ(length_of({.steps = 8, .goodput = 0.5}, samples::sample_problem())->goodput, 0.5);
}

TEST(Objective, ContradictionsNameTheField) {
  Problem problem = samples::sample_problem();
  EXPECT_EQ(complaint([&] { check_objective({.tokens = 1, .steps = 1}, problem); }),
            "`steps`: contradicts `tokens`; give one");
  EXPECT_EQ(complaint([&] { check_objective({.budget = Usd(1)}, problem); }),
            "`budget`: needs to know how long the training is: give `tokens` or `steps`");
  EXPECT_EQ(complaint([&] { check_objective({.metric = Metric::cost}, problem); }), "");
  problem.cluster.nodes[1].price = UsdPerSecond(0);
  EXPECT_TRUE(complaint([&] {
                check_objective({.metric = Metric::cost}, problem);
              }).starts_with("`objective`: needs the price of every node, and that of 'node1'"));
  EXPECT_EQ(complaint([&] { check_objective({.metric = Metric::time}, problem); }), "");
}

}  // namespace
}  // namespace plait
