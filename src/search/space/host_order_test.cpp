#include "search/space/host_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "plan/sample_problems.h"
#include "search/space/search.h"

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

}  // namespace
}  // namespace plait
