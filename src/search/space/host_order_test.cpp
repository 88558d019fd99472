#include "search/space/host_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "plan/sample_problems.h"
#include "plan/target.h"
#include "search/space/search.h"
#include "search/space/space.h"

namespace plait {
namespace {

// Three nodes of 4 A100 and two of 4 H100, one of them with a slower network.
Cluster hosts() {
  Cluster cluster = samples::cluster_of(samples::a100(), 5, 4);
  cluster.device_types.push_back(samples::h100());
  for (std::size_t d = 12; d < 20; ++d) cluster.devices[d].type = 1;
  cluster.nodes[4].uplink.bandwidth = BytesPerSecond(1e9);
  return cluster;
}

// The same hosts in another order.
Cluster shuffled(const Cluster& cluster, std::mt19937_64& random) {
  std::vector<int> order{0, 1, 2, 3, 4};
  std::ranges::shuffle(order, random);
  Cluster out = cluster;
  out.nodes.clear();
  out.devices.clear();
  for (const int n : order) {
    out.nodes.push_back(cluster.nodes[n]);
    for (const Device& device : cluster.devices)
      if (device.node == n)
        out.devices.push_back({device.type, static_cast<int>(out.nodes.size()) - 1});
  }
  if (random() % 2 == 0) {
    std::swap(out.device_types[0], out.device_types[1]);
    for (Device& device : out.devices) device.type = 1 - device.type;
  }
  return out;
}

TEST(HostOrder, DependsOnTheHostsAlone) {
  std::mt19937_64 random(3);
  const Cluster sorted = HostOrder(hosts()).canonical();
  EXPECT_EQ(sorted.device_types[0].name, "H100");
  EXPECT_TRUE(HostOrder(sorted).is_canonical());
  for (int i = 0; i < 20; ++i) {
    const Cluster other = shuffled(hosts(), random);
    const HostOrder order(other);
    EXPECT_EQ(order.canonical(), sorted);
    // Ids that are given back are those of the same hosts.
    Plan plan;
    plan.stages.resize(1);
    for (int d = 0; d < other.device_count(); ++d) plan.stages[0].devices.push_back(DeviceId(d));
    order.restore(plan);
    for (int d = 0; d < other.device_count(); ++d) {
      const DeviceId user = plan.stages[0].devices[d];
      EXPECT_EQ(other.type_of(user), sorted.type_of(DeviceId(d)));
      EXPECT_EQ(other.node_of(user).uplink, sorted.node_of(DeviceId(d)).uplink);
    }
  }
}

TEST(HostOrder, DoesNotChangeTheAnswer) {
  std::mt19937_64 random(4);
  Problem problem =
      samples::problem_of(samples::gpt(12, 1024, 16, 1024), hosts(), {.global_batch = 32});
  const auto step = [&] {
    return run_search(planners().front(), {problem, {.keep = 1}, {}, {}, {}})
        .plans.front()
        .cost.step;
  };
  const Seconds before = step();
  for (int i = 0; i < 3; ++i) {
    problem.cluster = shuffled(hosts(), random);
    EXPECT_DOUBLE_EQ(step().value, before.value);
  }
}

std::vector<int> devices_of(const Stage& stage) {
  std::vector<int> out;
  for (const DeviceId id : stage.devices) out.push_back(index(id));
  return out;
}

Stage stage_on(const std::vector<int>& devices, std::vector<int> shares) {
  Stage stage;
  for (const int own : devices) stage.devices.push_back(DeviceId{own});
  stage.spans.push_back({.units = {0, 1}, .data = static_cast<int>(devices.size())});
  stage.shares = std::move(shares);
  return stage;
}

TEST(RankOrder, ReplicasStandBesideTheStageThatHasTheRestOfTheirNode) {
  const Cluster cluster = samples::cluster_of(samples::a100(), 3, 4);
  Plan plan;
  plan.stages = {stage_on({1, 4}, {3, 5}), stage_on({8, 0}, {2, 6}), stage_on({9, 10, 11}, {})};
  put_ranks_in_order(cluster, plan);
  EXPECT_EQ(devices_of(plan.stages[0]), (std::vector{4, 1}));
  EXPECT_EQ(plan.stages[0].shares, (std::vector{5, 3}));
  EXPECT_EQ(devices_of(plan.stages[1]), (std::vector{0, 8}));
  EXPECT_EQ(plan.stages[1].shares, (std::vector{6, 2}));
  EXPECT_EQ(devices_of(plan.stages[2]), (std::vector{9, 10, 11}));
}

// Two stages of two pools each, with a node in common.
TEST(RankOrder, PlansOfASpaceHaveTheirNodesInARow) {
  Problem problem = samples::problem_of(samples::gpt(6, 1024, 16, 1024),
                                        samples::cluster_of(samples::a100(), 3, 2), {});
  problem.job.global_batch = 8;
  problem.cluster.nodes[1].uplink.bandwidth = BytesPerSecond(3e10);
  problem.cluster.nodes[2].uplink.bandwidth = BytesPerSecond(1e10);
  const Target& aceso = *target_named("aceso");
  const Space space(problem, {}, aceso);
  ASSERT_EQ(space.pools().size(), 3u);
  const int units = problem.model.unit_count();
  const StageOption first{1, 2, {{0, 1, 2}, {1, 1, 2}}};
  const StageOption second{1, 2, {{0, 1, 2}, {2, 1, 2}}};
  const std::vector<Plan> plans = space.plans_of(
      {{first, {1, 0}, {0, 4}, {}}, {second, {0, 0}, {4, units}, {}}}, {.micro_batches = 2});
  ASSERT_FALSE(plans.empty());
  for (const Plan& plan : plans) {
    EXPECT_EQ(devices_of(plan.stages[0]), (std::vector{2, 1}));
    EXPECT_EQ(devices_of(plan.stages[1]), (std::vector{0, 4}));
  }
}

}  // namespace
}  // namespace plait
