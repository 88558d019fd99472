#include "cost/layer/measured.h"

#include <gtest/gtest.h>

#include "cost/engine.h"
#include "plan/sample_problems.h"

namespace plait {
namespace {

// A block whose analytic forward takes 1 ms a sample divided by the tensor degree, whose backward
// takes 2 ms, half of it for weight gradients, and which keeps 100 bytes a sample.
UnitCosts simple(const LayerKind&, const Sharding& s) {
  UnitCost none;
  none.forward = Seconds(1e-3 * s.samples / s.tensor);
  none.backward = none.weight_gradient = none.forward;
  none.forward_comm = Seconds(s.tensor > 1 ? 0.5e-3 : 0);
  none.backward_comm = none.forward_comm;
  none.saved = Bytes(100 * s.samples);
  none.parameters = 10;
  UnitCosts costs{none, none, none};
  costs[1].recompute = 0.25 * none.forward;
  costs[1].saved = 0.5 * none.saved;
  costs[2].recompute = none.forward;
  costs[2].saved = 0.1 * none.saved;
  return costs;
}

struct Case {
  Profile profile;
  Model model;
  LayerKind kind{.name = "decoder", .ops = {}, .output = 1};
  Sharding sharding;
  int devices = 1;

  Case() { model.sequence_length = 1024; }
  ComputeSample& at(int tensor, int micro_batch, int sequence = 0) {
    return profile.compute[{"decoder", "T4", tensor, micro_batch, sequence, 0}];
  }
  std::optional<MeasuredCost> cost(double samples, int tensor = 1, const char* type = "T4") {
    sharding = {.samples = samples, .tensor = tensor};
    return measured_cost({.profile = profile,
                          .model = model,
                          .device_type = type,
                          .kind = kind,
                          .usual = kind,
                          .sharding = sharding,
                          .state_bytes = 16,
                          .devices = devices},
                         simple);
  }
};

// The host launches the forward pass late and backward early: together they are not longer than
// what the device does, which the host runs ahead of.
TEST(Measured, TheHostDelaysAUnitOnlyByWhatBothPassesTakeToLaunch) {
  Case c;
  c.at(1, 2) = {.forward = Seconds(1e-3),
                .backward = Seconds(2e-3),
                .forward_launch = Seconds(2e-3),
                .backward_launch = Seconds(0.5e-3)};
  EXPECT_NEAR(c.cost(2)->costs[0].forward.value, 1e-3, 1e-12);
  // 4.5 ms for 3: both passes are half as long again.
  c.at(1, 2).backward_launch = Seconds(2.5e-3);
  const UnitCost late = c.cost(2)->costs[0];
  EXPECT_NEAR(late.forward.value, 1.5e-3, 1e-12);
  EXPECT_NEAR((late.backward + late.weight_gradient).value, 3e-3, 1e-12);
}

// The decoder's 4.5 ms to launch find 4 ms of the head to hide behind.
TEST(Measured, TheHostMakesUpInOneUnitForBeingLateInAnother) {
  Case c;
  c.model.kinds = {c.kind, c.kind};
  c.model.kinds[1].name = "head";
  c.model.units = {0, 1};
  c.at(1, 2) = {.forward = Seconds(1e-3),
                .backward = Seconds(2e-3),
                .forward_launch = Seconds(2e-3),
                .backward_launch = Seconds(2.5e-3)};
  c.profile.compute[{"head", "T4", 1, 2, 0, 0}] = {
      .forward = Seconds(4e-3), .backward = Seconds(0), .forward_launch = Seconds(0.5e-3)};
  EXPECT_NEAR(c.cost(2)->costs[0].forward.value, 1e-3, 1e-12);
  // Two decoders: 9.5 ms for 10; three: 14 for 13.
  c.model.units = {0, 0, 1};
  EXPECT_NEAR(c.cost(2)->costs[0].forward.value, 1e-3, 1e-12);
  c.model.units = {0, 0, 0, 1};
  EXPECT_NEAR(c.cost(2)->costs[0].forward.value, 1e-3 * 14 / 13, 1e-12);
}

// Aceso's ops: all that is known of them beside the measurements is a name.
TEST(Measured, OpsWithoutAShapeTakeLongerInProportion) {
  Case c;
  Op op;
  op.name = "enc-MLP-GEMM-1";
  c.kind.ops = {op};
  c.at(1, 2).forward = Seconds(4e-3);
  c.at(1, 2).backward = Seconds(6e-3);
  c.at(1, 2).saved_activations = Bytes(100);
  EXPECT_NEAR(c.cost(8)->costs[0].forward.value, 16e-3, 1e-12);
  EXPECT_NEAR(c.cost(8)->costs[0].saved.value, 400, 1e-9);
  EXPECT_NEAR(c.cost(1)->costs[0].forward.value, 4e-3, 1e-12);  // never less than was measured
  // 3 ms more for 2 samples.
  c.at(1, 4).forward = Seconds(7e-3);
  EXPECT_NEAR(c.cost(8)->costs[0].forward.value, 13e-3, 1e-12);
}

TEST(Measured, TheSlowestOfManyIsLaterThanTheMean) {
  // Means of the largest of n standard normal values: 0.564 of 2, 1.267 of 6, 2.51 of 100 (tables
  // of order statistics).
  EXPECT_NEAR(slowest_of(1), 0, 1e-9);
  EXPECT_NEAR(slowest_of(2), 0.564, 0.05 * 0.564);
  EXPECT_NEAR(slowest_of(6), 1.267, 0.05 * 1.267);
  EXPECT_NEAR(slowest_of(100), 2.51, 0.05 * 2.51);
}

TEST(Measured, AStepWaitsForTheSlowestDevice) {
  Case c;
  c.at(1, 2) = {.forward = Seconds(0.010),
                .backward = Seconds(0.030),
                .optimizer = Seconds(0.001),
                .spread = 0.1};
  EXPECT_DOUBLE_EQ(c.cost(2)->costs[0].forward.value, 0.010);
  c.devices = 6;
  const auto cost = c.cost(2);
  const double late = 1 + 0.1 * slowest_of(6);
  EXPECT_DOUBLE_EQ(cost->costs[0].forward.value, 0.010 * late);
  EXPECT_DOUBLE_EQ((cost->costs[0].backward + cost->costs[0].weight_gradient).value, 0.030 * late);
  EXPECT_DOUBLE_EQ(cost->costs[0].optimizer.value, 0.001 * late);
  c.at(1, 2).spread.reset();
  EXPECT_DOUBLE_EQ(c.cost(2)->costs[0].forward.value, 0.010);
}

TEST(Measured, APointIsTakenAsItIs) {
  Case c;
  c.at(1, 2) = {.forward = Seconds(0.010), .backward = Seconds(0.030)};
  const auto cost = c.cost(2);
  ASSERT_TRUE(cost);
  EXPECT_EQ(cost->origin.time, Source::measured);
  EXPECT_DOUBLE_EQ(cost->costs[0].forward.value, 0.010);
  // Weight gradients are half of backward, as analytic.
  EXPECT_DOUBLE_EQ(cost->costs[0].weight_gradient.value, 0.015);
  // Full recompute repeats the measured forward, selective the analytic quarter of it.
  EXPECT_DOUBLE_EQ(cost->costs[2].recompute.value, 0.010);
  EXPECT_DOUBLE_EQ(cost->costs[1].recompute.value, 0.0025);
}

TEST(Measured, BetweenMicroBatchesItIsAffine) {
  Case c;
  c.at(1, 1) = {.forward = Seconds(0.010), .backward = Seconds(0.020)};
  c.at(1, 4) = {.forward = Seconds(0.016), .backward = Seconds(0.032)};
  const auto cost = c.cost(2);
  EXPECT_DOUBLE_EQ(cost->costs[0].forward.value, 0.012);
  EXPECT_EQ(cost->origin.time, Source::interpolated);
  EXPECT_EQ(in_words(cost->origin), "interpolated from tp 1, micro-batch 1 and 4");
  // 0.016 + 4 x 0.002, not 0.010 x 8.
  EXPECT_DOUBLE_EQ(c.cost(8)->costs[0].forward.value, 0.024);
}

TEST(Measured, OnePointGrowsAsTheAnalyticModelDoes) {
  Case c;
  c.at(1, 2) = {.forward = Seconds(0.010), .backward = Seconds(0.020)};
  EXPECT_DOUBLE_EQ(c.cost(8)->costs[0].forward.value, 0.040);
}

TEST(Measured, AnotherTensorDegreeIsTheNearestTimesTheAnalyticRatio) {
  Case c;
  c.at(1, 4) = {.forward = Seconds(0.008), .backward = Seconds(0.016)};
  const auto cost = c.cost(4, 2);
  EXPECT_DOUBLE_EQ(cost->costs[0].forward.value, 0.004);
  // Communication was not inside: the analytic one is added.
  EXPECT_DOUBLE_EQ(cost->costs[0].forward_comm.value, 0.5e-3);
  EXPECT_EQ(in_words(cost->origin), "interpolated from tp 1, micro-batch 4");
}

TEST(Measured, CommunicationInsideIsNotAddedAgain) {
  Case c;
  c.at(2, 4) = {
      .forward = Seconds(0.008), .backward = Seconds(0.016), .communication_inside = true};
  const auto cost = c.cost(4, 2);
  EXPECT_EQ(cost->origin.time, Source::measured);
  EXPECT_EQ(cost->costs[0].forward_comm, Seconds(0));
  EXPECT_EQ(cost->costs[0].backward_comm, Seconds(0));
}

TEST(Measured, ASumIsDividedAsTheAnalyticModelDivides) {
  Case c;
  c.at(1, 1).both = Seconds(0.03);
  const auto cost = c.cost(1);
  EXPECT_NEAR(cost->costs[0].forward.value, 0.01, 1e-15);
  EXPECT_NEAR((cost->costs[0].backward + cost->costs[0].weight_gradient).value, 0.02, 1e-15);
}

TEST(Measured, ForwardAloneGivesBackwardByTheAnalyticRatio) {
  Case c;
  c.at(1, 1).forward = Seconds(0.01);
  const auto cost = c.cost(1);
  EXPECT_NEAR((cost->costs[0].backward + cost->costs[0].weight_gradient).value, 0.02, 1e-15);
  EXPECT_EQ(cost->origin.time, Source::interpolated);
}

TEST(Measured, GrowthOfTheWholeMemoryIsWhatIsSaved) {
  Case c;
  // 1000 of states and the like, 300 a sample; 16 x 10 bytes of it are known states.
  c.at(1, 1) = {.forward = Seconds(1), .memory = Bytes(1300)};
  c.at(1, 2) = {.forward = Seconds(2), .memory = Bytes(1600)};
  const auto cost = c.cost(2);
  EXPECT_DOUBLE_EQ(cost->costs[0].saved.value, 600);
  EXPECT_DOUBLE_EQ(cost->costs[0].held.value, 1600 - 600 - 160);
  EXPECT_EQ(cost->origin.memory, Source::interpolated);
}

TEST(Measured, WhatWasNotMeasuredIsNothing) {
  Case c;
  c.at(1, 1).forward = Seconds(0.01);
  EXPECT_FALSE(c.cost(1, 1, "A100"));
  c.kind.name = "head";
  EXPECT_FALSE(c.cost(1));
}

TEST(Measured, AnotherSequenceIsTheNearestTimesTheAnalyticRatio) {
  Case c;
  c.at(1, 1, 512) = {.forward = Seconds(0.005), .backward = Seconds(0.01)};
  const auto cost = c.cost(1);
  EXPECT_EQ(cost->origin.sequence, 512);
  EXPECT_EQ(cost->origin.time, Source::interpolated);
  EXPECT_GT(cost->costs[0].forward, Seconds(0));
}

// A missing point never becomes an absurd number: whatever degrees are asked for, an engine with
// a sparse profile stays within a small factor of the analytic one.
TEST(Measured, SparseProfilesStayNearTheAnalyticModel) {
  Job job;
  job.global_batch = 64;
  Problem problem = samples::problem_of(samples::gpt(4, 1024, 16, 1024),
                                        samples::cluster_of(samples::a100(), 2, 8), job);
  const CostEngine analytic(problem);
  Problem with_profile = problem;
  for (const int micro_batch : {1, 64})
    with_profile.profile.compute[{"decoder", "A100", 4, micro_batch, 0, 0}] = {
        .forward = Seconds(0.5e-3 * micro_batch), .backward = Seconds(1e-3 * micro_batch)};
  const CostEngine measured(with_profile);
  for (const int tensor : {1, 2, 4, 8})
    for (const int m : {1, 4, 16}) {
      Plan plan;
      plan.micro_batches = m;
      Stage stage;
      stage.spans.push_back({.units = {0, 6}, .tensor = tensor, .data = 2});
      for (int d = 0; d < 2 * tensor; ++d) stage.devices.push_back(DeviceId(d));
      plan.stages.push_back(stage);
      const double ratio = measured.estimate(plan).step / analytic.estimate(plan).step;
      EXPECT_GT(ratio, 0.1);
      EXPECT_LT(ratio, 10);
      EXPECT_EQ(measured.estimate(plan).stages[0].source, Source::analytic);  // the embedding
    }
}

}  // namespace
}  // namespace plait
