#include "search/space/space.h"

#include <gtest/gtest.h>

#include "plan/sample_problems.h"

namespace plait {
namespace {

// Two nodes of four A100 and one of two H100.
Problem mixed_problem(int batch = 12) {
  Cluster cluster = samples::cluster_of(samples::a100(), 2, 4);
  cluster.device_types.push_back(samples::h100());
  cluster.nodes.push_back(cluster.nodes.front());
  for (int d = 0; d < 2; ++d) cluster.devices.push_back({1, 2});
  Job job;
  job.global_batch = batch;
  return samples::problem_of(samples::gpt(4, 1024, 16, 1024), cluster, job);
}

TEST(Pools, AreEqualDevicesInEqualNodes) {
  const std::vector<Pool> pools = pools_of(mixed_problem().cluster);
  ASSERT_EQ(pools.size(), 2u);
  EXPECT_EQ(pools[0].size(), 8);
  EXPECT_EQ(pools[0].per_node, 4);
  EXPECT_EQ(pools[1].size(), 2);
}

TEST(Pools, TellNodesOfAnotherSizeApart) {
  Problem problem = mixed_problem();
  problem.cluster.devices.erase(problem.cluster.devices.begin());  // three on the first node
  EXPECT_EQ(pools_of(problem.cluster).size(), 3u);
}

TEST(Space, HasEveryDivisorOfTheBatchAsMicroBatches) {
  const Problem problem = mixed_problem(12);
  const Space space(problem, {});
  std::vector<int> micro_batches;
  for (const PlanSettings& settings : space.settings())
    if (micro_batches.empty() || micro_batches.back() != settings.micro_batches)
      micro_batches.push_back(settings.micro_batches);
  EXPECT_EQ(micro_batches, (std::vector<int>{1, 2, 3, 4, 6, 12}));
}

TEST(Space, AlignsTensorGroupsWithNodes) {
  const Problem problem = mixed_problem();
  const Space space(problem, {});
  EXPECT_EQ(space.aligned(0, 1, 1), 1);
  EXPECT_EQ(space.aligned(0, 1, 2), 2);
  EXPECT_EQ(space.aligned(0, 5, 4), 8);
  EXPECT_EQ(space.aligned(0, 5, 8), 8);  // two nodes: begins with a node
}

TEST(Space, CutsSequencesByDegreesThatDivideThem) {
  Problem problem = mixed_problem();
  problem.model.sequence_length = 1022;  // 2 divides it, 4 does not
  const Space space(problem, {});
  bool with = false;
  bool without = false;
  for (const PlanSettings& settings : space.settings()) {
    (settings.sequence_parallel ? with : without) = true;
    for (const StageOption& option : space.stage_options(settings))
      EXPECT_TRUE(!settings.sequence_parallel || 1022 % option.tensor == 0);
  }
  EXPECT_TRUE(with);
  EXPECT_TRUE(without);
}

TEST(Space, SaysWhichOpADegreeDoesNotDivide) {
  std::string obstacle;
  EXPECT_TRUE(cuts_evenly(mixed_problem().model, 16));
  EXPECT_FALSE(cuts_evenly(mixed_problem().model, 3, &obstacle));
  EXPECT_NE(obstacle.find("of "), std::string::npos);
}

TEST(Space, SaysZeroOnlyWhereThereAreCopies) {
  const Problem problem = mixed_problem();
  const Space space(problem, {});
  const int units = problem.model.unit_count();
  PlanSettings settings{.micro_batches = 12, .zero = ZeroStage::optimizer};
  PlacedStage stage{{1, 1, {{0, 1, 1}}}, {0}, {0, units}, {}};
  EXPECT_EQ(space.plan_of({stage}, settings, Schedule::one_f_one_b).zero, ZeroStage::off);
  stage.option = {1, 2, {{0, 2, 2}}};
  settings.micro_batches = 6;
  EXPECT_EQ(space.plan_of({stage}, settings, Schedule::one_f_one_b).zero, ZeroStage::optimizer);
}

// Samples of a micro-batch, as even as they can be.
TEST(StageOptions, ShareAMicroBatchOverAllReplicas) {
  const Problem problem = mixed_problem(24);
  const Space space(problem, {});
  int mixed = 0;
  for (const PlanSettings& settings : space.settings()) {
    const int micro_batch = 24 / settings.micro_batches;
    for (const StageOption& option : space.stage_options(settings)) {
      int samples = 0;
      int replicas = 0;
      for (const Take& take : option.takes) {
        samples += take.samples;
        replicas += option.data_of(take);
        EXPECT_GE(take.samples, option.data_of(take));
        EXPECT_LE(take.devices, space.pools()[take.pool].size());
      }
      EXPECT_EQ(samples, micro_batch);
      EXPECT_EQ(replicas, option.data);
      EXPECT_EQ(option.devices(), option.tensor * option.data * settings.context);
      mixed += option.takes.size() > 1 ? 1 : 0;
    }
  }
  EXPECT_GT(mixed, 0);
}

TEST(StageOptions, HonourPins) {
  const Problem problem = mixed_problem(24);
  const Space space(problem, {.tensor = 2, .data = 3});
  int options = 0;
  for (const PlanSettings& settings : space.settings())
    for (const StageOption& option : space.stage_options(settings)) {
      ++options;
      EXPECT_EQ(option.tensor, 2);
      EXPECT_EQ(option.data, 3);
    }
  EXPECT_GT(options, 0);
}

}  // namespace
}  // namespace plait
