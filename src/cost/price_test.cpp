#include "cost/price.h"

#include <gtest/gtest.h>

#include "plan/sample_plans.h"

namespace plait {
namespace {

TEST(Price, IsOfTheNodesInUse) {
  const Cluster cluster = samples::sample_cluster(2, 1);
  // The sample plan uses the eight devices of the first node: $32.77 an hour.
  EXPECT_NEAR(price_of(cluster, samples::sample_plan()).value * 3600, 32.77, 1e-9);
}

TEST(Price, IsUnknownWhenThatOfANodeInUseIs) {
  Cluster cluster = samples::sample_cluster(2, 1);
  cluster.nodes[1].price = {};
  EXPECT_EQ(unpriced_node(cluster), "node1");
  EXPECT_GT(price_of(cluster, samples::sample_plan()).value, 0);
  cluster.nodes[0].price = {};
  EXPECT_EQ(price_of(cluster, samples::sample_plan()).value, 0);
}

TEST(Price, TrainingIsStepsTimesRent) {
  // 1,000 steps of 3.6 s are an hour, at $20 an hour.
  const Training training = training_of({1000}, Seconds(3.6), UsdPerSecond(20.0 / 3600));
  EXPECT_DOUBLE_EQ(training.time.value, 3600);
  EXPECT_DOUBLE_EQ(training.price.value, 20);
}

TEST(Price, TimeThatIsLostIsPaidToo) {
  // Steps of an hour in all are four fifths of 1.25 hours.
  const Training training = training_of({1000, 0.8}, Seconds(3.6), UsdPerSecond(20.0 / 3600));
  EXPECT_DOUBLE_EQ(training.time.value, 4500);
  EXPECT_DOUBLE_EQ(training.price.value, 25);
}

TEST(Price, StepsForTokensAreRoundedUp) {
  Problem problem = samples::sample_problem();
  problem.job.global_batch = 64;
  // 1e9 / (64 * 1024) = 15258.79
  EXPECT_EQ(steps_for_tokens(problem, 1e9), 15259);
}

}  // namespace
}  // namespace plait
