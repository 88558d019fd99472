#include <gtest/gtest.h>

#include <cstdio>

#include "plan/describe.h"
#include "random_problem.h"
#include "search/space/search.h"

namespace plait {
namespace {

const Planner& planner(std::string_view name) {
  for (const Planner& p : planners())
    if (p.name == name) return p;
  throw std::runtime_error("no such planner");
}

constexpr std::string_view kPeers[] = {"amp", "fasop", "metis"};

SearchResult run(std::string_view name, const Problem& problem, const SearchOptions& options) {
  return run_search(planner(name), SearchContext{problem, options, {}, {}, {}});
}

// Eight units on two nodes of four fast and two of four slow devices, with memory for anything.
Problem roomy_problem() {
  Problem problem;
  for (unsigned seed = 0; problem.model.unit_count() != 8; ++seed) {
    std::mt19937_64 random(seed);
    problem = random_problem(random, 8, 16);
  }
  Cluster& cluster = problem.cluster;
  DeviceType slow = cluster.device_types.front();
  cluster.device_types = {slow, slow};
  cluster.device_types[0].peak.fill(FlopsPerSecond(1e14));
  cluster.device_types[1].peak.fill(FlopsPerSecond(4e13));
  for (DeviceType& type : cluster.device_types) type.memory = Bytes(80e9);
  cluster.nodes.resize(4, cluster.nodes.front());
  cluster.devices.clear();
  for (int i = 0; i < 16; ++i) cluster.devices.push_back({i / 8, i / 4});
  problem.job.global_batch = 16;
  return problem;
}

// Shards of one test, so that they can run side by side: 4 x 125 = 500 problems.
class Peers : public testing::TestWithParam<int> {};
constexpr int kProblemsPerShard = 125;
INSTANTIATE_TEST_SUITE_P(Shards, Peers, testing::Range(0, 4));

// run_search itself checks that every plan is sound and fits.
TEST_P(Peers, AreNeverBetterThanAutoOnRandomProblems) {
  int solved = 0;
  for (int i = 0; i < kProblemsPerShard; ++i) {
    const unsigned seed = 1000 * GetParam() + i;
    std::mt19937_64 random(seed);
    Problem problem = random_problem(random, 1 + i % 10, 2 + i % 15);
    if (i % 3 == 0)
      for (Node& node : problem.cluster.nodes) node.uplink = problem.cluster.nodes[0].uplink;
    SearchOptions options{.keep = 1};
    options.group_scale_variance = i % 2 == 0 ? 1 : 0.25;
    const SearchResult best = run("auto", problem, options);
    for (const std::string_view peer : kPeers) {
      const SearchResult other = run(peer, problem, options);
      if (other.plans.empty()) continue;
      ++solved;
      ASSERT_FALSE(best.plans.empty()) << "seed " << seed << " " << peer;
      EXPECT_LE(best.plans[0].cost.step / other.plans[0].cost.step, 1 + 1e-9)
          << "seed " << seed << "\nauto:  " << describe(best.plans[0].plan) << "\n"
          << peer << ":  " << describe(other.plans[0].plan);
    }
  }
  std::printf("%d plans of peers\n", solved);
  EXPECT_GT(solved, kProblemsPerShard);
}

TEST(PeerPlanners, HonourPins) {
  const Problem problem = roomy_problem();
  SearchOptions options{.keep = 1000};
  options.pins.tensor = 2;
  options.pins.pipeline = 4;
  options.pins.micro_batch = 1;
  options.pins.recompute = Recompute::full;
  options.pins.zero = ZeroStage::optimizer;
  for (const std::string_view peer : kPeers) {
    const SearchResult result = run(peer, problem, options);
    ASSERT_FALSE(result.plans.empty()) << peer;
    for (const RankedPlan& ranked : result.plans) {
      EXPECT_EQ(ranked.plan.stage_count(), 4) << peer;
      EXPECT_EQ(ranked.plan.zero, ZeroStage::optimizer) << peer;
      for (const Stage& stage : ranked.plan.stages) {
        EXPECT_EQ(stage.spans[0].tensor, 2) << peer;
        EXPECT_EQ(stage.spans[0].recompute, Recompute::full) << peer;
        EXPECT_EQ(16 / ranked.plan.micro_batches, stage.spans[0].data) << peer;
        EXPECT_TRUE(stage.shares.empty()) << peer;
      }
    }
  }
}

TEST(PeerPlanners, KeepPinnedStages) {
  const Problem problem = roomy_problem();
  SearchOptions options{.keep = 100};
  options.pins.stages = {1, 7};
  for (const std::string_view peer : kPeers) {
    const SearchResult result = run(peer, problem, options);
    ASSERT_FALSE(result.plans.empty()) << peer;
    for (const RankedPlan& ranked : result.plans)
      EXPECT_EQ(ranked.plan.stages[1].spans[0].units, (UnitRange{1, 8})) << peer;
  }
}

TEST(PeerPlanners, TryFewerPlansWhenTheirKnobsSaySo) {
  const Problem problem = roomy_problem();
  SearchOptions options;
  options.group_scale_variance = 0.25;
  const auto tried = [&](std::string_view peer) { return run(peer, problem, options).evaluations; };
  // Two nodes of each type: four rotations, of which one is asked for.
  const auto all_rotations = tried("fasop");
  const auto all_groups = tried("metis");
  options.rotations = 1;
  EXPECT_EQ(tried("fasop") * 4, all_rotations);
  options.rotations = 0;
  options.max_tensor = 1;
  EXPECT_LT(tried("fasop"), all_rotations);
  options.max_tensor = 4;
  options.group_scale_variance = 1;
  EXPECT_LT(tried("metis"), all_groups);
  options.group_scale_variance = 0.25;
  options.max_permute_len = 1;
  EXPECT_LT(tried("metis"), all_groups);
}

TEST(PeerPlanners, StopAtTheirLimits) {
  const Problem problem = roomy_problem();
  SearchOptions options;
  options.max_evaluations = 3;
  for (const std::string_view peer : kPeers) {
    const SearchResult result = run(peer, problem, options);
    EXPECT_EQ(result.evaluations, 3) << peer;
    EXPECT_TRUE(result.cut_short) << peer;
  }
  options.max_evaluations = 0;
  options.time_limit = Seconds(0);
  for (const std::string_view peer : kPeers) {
    const SearchResult result = run(peer, problem, options);
    EXPECT_EQ(result.evaluations, 0) << peer;
    EXPECT_TRUE(result.cut_short) << peer;
  }
}

TEST(PeerPlanners, RunPinnedSchedules) {
  const Problem problem = roomy_problem();
  SearchOptions options;
  for (const Schedule schedule : {Schedule::gpipe, Schedule::interleaved, Schedule::zb_h1}) {
    options.pins.schedule = schedule;
    options.pins.pipeline = 2;
    for (const std::string_view peer : kPeers) {
      const SearchResult result = run(peer, problem, options);
      ASSERT_FALSE(result.plans.empty()) << peer;
      EXPECT_EQ(result.plans.front().plan.schedule, schedule) << peer;
    }
  }
}

TEST(PeerPlanners, SayWhichPinLeavesNothing) {
  const Problem problem = roomy_problem();
  SearchOptions options;
  options.pins.pipeline = 9;  // of eight units
  for (const std::string_view peer : kPeers) {
    const SearchResult result = run(peer, problem, options);
    EXPECT_TRUE(result.plans.empty()) << peer;
    EXPECT_NE(result.reason.find("`pipeline`: 9"), std::string::npos) << peer;
  }
}

}  // namespace
}  // namespace plait
