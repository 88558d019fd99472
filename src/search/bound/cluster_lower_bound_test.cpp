#include "search/bound/cluster_lower_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cost/engine.h"
#include "plan/sample_problems.h"
#include "search/space/schedules.h"

namespace plait {
namespace {

constexpr double kRounding = 1e-9;

// One device that computes fast and reads slowly, and one of which the opposite is true, so that
// layers and output layer have another order of speed on each.
Problem two_types(int global_batch) {
  DeviceType fast = samples::a100();
  DeviceType wide = samples::a100();
  fast.memory_bandwidth = 0.2 * fast.memory_bandwidth;
  wide.name = "wide";
  for (FlopsPerSecond& peak : wide.peak) peak = 0.4 * peak;
  Cluster cluster = samples::cluster_of(fast, 2, 1);
  cluster.device_types.push_back(wide);
  cluster.devices[1].type = 1;
  return samples::problem_of(samples::gpt(4, 512, 8, 512), cluster, {.global_batch = global_batch});
}

// What a replica takes for all units, compute alone.
double compute(const CostEngine& engine, int type, int samples) {
  if (samples == 0) return 0;
  ReplicaShape shape;
  shape.device_type = type;
  shape.sharding.samples = samples;
  const UnitRange whole{0, engine.problem().model.unit_count()};
  return engine.table(shape).cost(whole, Recompute::none).total().value;
}

// A stage takes what its slowest replica takes for all of its units; which unit is slow on which
// type does not matter. All shares of a micro-batch over the two devices are tried.
TEST(ClusterLowerBound, IsAboveNoShareOfAMicroBatchOverTwoTypes) {
  for (const int batch : {2, 4, 7, 16}) {
    const Problem problem = two_types(batch);
    const CostEngine engine(problem);
    double best = HUGE_VAL;
    for (int own = 0; own <= batch; ++own)
      best = std::min(best, std::max(compute(engine, 0, own), compute(engine, 1, batch - own)));
    const Pins pins{.pipeline = 1, .micro_batches = 1};
    Target target;
    target.schedules = {Schedule::one_f_one_b};
    const Seconds bound = ClusterLowerBound(engine, pins, target).step({1, 1});
    EXPECT_LE(bound.value, (1 + kRounding) * best) << batch;
    EXPECT_GT(bound.value, 0.3 * best) << batch;
  }
}

TEST(ClusterLowerBound, BoundsNothingWhereItWasStopped) {
  const Problem problem = two_types(4);
  const CostEngine engine(problem);
  int looks = 0;
  const auto stop_later = [&] { return ++looks > 1; };
  const ClusterLowerBound bound(engine, {}, {}, stop_later);
  EXPECT_EQ(looks, 2);
  EXPECT_EQ(bound.step({1, 1}), Seconds(0));
  EXPECT_EQ(bound.micro_batches({1, 1}, Seconds(1e-9)), (std::vector<int>{1, 2, 4}));
  EXPECT_GT(ClusterLowerBound(engine, {}).step({1, 1}), Seconds(0));
}

// Stages of an interleaved pipeline begin with the first of their chunks, so that a step is shorter
// than the way of the first micro-batch and all others on the slowest stage. Four devices, sixteen
// layers in chunks of one, four micro-batches of one sample.
TEST(ClusterLowerBound, IsAboveNoInterleavedPipeline) {
  const Cluster cluster = samples::cluster_of(samples::a100(), 1, 4);
  const Problem problem =
      samples::problem_of(samples::gpt(16, 2048, 16, 1024), cluster, {.global_batch = 4});
  const CostEngine engine(problem);
  Plan plan;
  plan.micro_batches = 4;
  const int units = problem.model.unit_count();
  for (int s = 0; s < 4; ++s) {
    Stage stage;
    stage.devices = {DeviceId(s)};
    stage.spans.push_back({.units = {s * units / 4, (s + 1) * units / 4}});
    plan.stages.push_back(stage);
  }
  Target target;
  target.schedules = {Schedule::one_f_one_b, Schedule::interleaved};
  const Pins pins{.tensor = 1, .micro_batches = 4};
  const Seconds bound = ClusterLowerBound(engine, pins, target).step({4});
  for (const Plan& interleaved : in_chunks(plan, Schedule::interleaved, 4)) {
    const Estimate cost = engine.simulate(interleaved);
    EXPECT_LE(bound, (1 + kRounding) * cost.step);
    EXPECT_GT(bound, 0.5 * cost.step);
  }
}

}  // namespace
}  // namespace plait
