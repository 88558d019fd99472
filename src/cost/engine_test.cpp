#include "cost/engine.h"

#include <gtest/gtest.h>

#include "cost/stage_cost.h"
#include "plan/sample_frameworks.h"
#include "plan/sample_problems.h"

namespace plait {
namespace {

Job job_of(const char* framework, int batch) {
  Job job;
  job.global_batch = batch;
  job.framework = samples::framework(framework);
  return job;
}

// Stages of equally many devices, in order; `ends` are the units at which they end.
Plan pipeline(const std::vector<int>& ends, int tensor, int data, int micro_batches) {
  Plan plan;
  plan.micro_batches = micro_batches;
  int unit = 0;
  int device = 0;
  for (const int end : ends) {
    Stage stage;
    stage.spans.push_back({.units = {unit, end}, .tensor = tensor, .data = data});
    for (int d = 0; d < tensor * data; ++d) stage.devices.push_back(DeviceId(device++));
    plan.stages.push_back(stage);
    unit = end;
  }
  return plan;
}

TEST(ModelFlops, CountCausalAttentionOnce) {
  // One layer of 1,024 features, 16 heads, 1,024 tokens; the head apart, products have
  // 24 h^2 s = 25.8 Gflop forward and scores 4 h s^2 = 4.3, of which causal attention needs half.
  Problem problem = samples::problem_of(samples::gpt(1, 1024, 16, 1024),
                                        samples::cluster_of(samples::plain_device(), 1, 1),
                                        job_of("megatron", 1));
  const Plan plan = pipeline({problem.model.unit_count()}, 1, 1, 1);
  const double scores = 4.0 * 1024 * 1024 * 1024;
  const double all = problem.model.forward().value;
  problem.model.causal = true;
  EXPECT_NEAR(model_flops_utilisation(problem, plan, Seconds(1)), 3 * (all - scores / 2) / 100e12,
              1e-12);
  EXPECT_NEAR(full_attention_utilisation(problem, plan, Seconds(1)), 3 * all / 100e12, 1e-12);
  problem.job.adapters = true;  // without gradients of the weights
  EXPECT_NEAR(full_attention_utilisation(problem, plan, Seconds(1)), 2 * all / 100e12, 1e-12);
  problem.model.causal = false;
  EXPECT_NEAR(model_flops_utilisation(problem, plan, Seconds(1)), 2 * all / 100e12, 1e-12);
}

TEST(HandOver, DevicesOfAStageShareTheNetworkOfTheirNode) {
  const Problem problem = samples::problem_of(samples::gpt(4, 1024, 16, 1024),
                                              samples::cluster_of(samples::plain_device(), 2, 8),
                                              job_of("megatron", 8));
  const Plan plan = pipeline({3, 6}, 1, 8, 1);
  // A sequence of 1024 x 1024 values in 2 bytes; 200 GB/s shared by 8 senders, and 5 us.
  EXPECT_NEAR(hand_over_time(problem, plan, plan.stages[0], plan.stages[1], 3).value,
              2.0 * 1024 * 1024 / 25e9 + 5e-6, 1e-12);
}

TEST(HandOver, OfMegatronDeepspeedInsideANodeReachesItsLimit) {
  const Problem problem = samples::problem_of(samples::gpt(4, 1024, 16, 1024),
                                              samples::cluster_of(samples::plain_device(), 1, 8),
                                              job_of("megatron-deepspeed", 1));
  const Plan plan = pipeline({3, 6}, 4, 1, 1);
  EXPECT_NEAR(hand_over_time(problem, plan, plan.stages[0], plan.stages[1], 3).value,
              2.0 * 1024 * 1024 / (12.5 * 0x1p30) + 5e-6, 1e-12);
}

TEST(Engine, EveryBoundaryIsCrossedForwardAndBackward) {
  const Problem problem =
      samples::problem_of(samples::gpt(6, 1024, 16, 1024),
                          samples::cluster_of(samples::a100(), 4, 1), job_of("megatron", 1));
  const Plan plan = pipeline({2, 4, 6, 8}, 1, 1, 1);
  const Estimate estimate = CostEngine(problem).estimate(plan);
  // One micro-batch visits all stages and comes back.
  Seconds expected;
  for (const StageCost& stage : estimate.stages) {
    expected += stage.forward_total() + stage.backward_total();
    expected += 2 * stage.send;
  }
  EXPECT_NEAR(estimate.pipeline.value, expected.value, 1e-12);
  for (int s = 0; s < 3; ++s) EXPECT_GT(estimate.stages[s].send.value, 0);
}

TEST(Engine, TiedTablesOnTwoStagesAreSummed) {
  const Problem problem =
      samples::problem_of(samples::gpt(6, 1024, 16, 1024),
                          samples::cluster_of(samples::a100(), 1, 2), job_of("megatron", 2));
  const CostEngine engine(problem);
  const Estimate cut = engine.estimate(pipeline({4, 8}, 1, 1, 2));
  const Estimate whole = engine.estimate(pipeline({8}, 1, 2, 1));
  // 4 bytes of 50257 x 1024 gradients, over a pair.
  const std::vector<DeviceId> pair{DeviceId(0), DeviceId(1)};
  const Seconds sync = all_reduce(group_of(problem.cluster, pair), Bytes(4.0 * 50257 * 1024));
  EXPECT_NEAR(cut.stages[0].tied_sync.value, sync.value, 1e-12);
  EXPECT_EQ(whole.stages[0].tied_sync.value, 0);
}

TEST(Engine, TheSlowestReplicaCounts) {
  Cluster cluster = samples::cluster_of(samples::h100(), 1, 2);
  const Problem fast =
      samples::problem_of(samples::gpt(6, 1024, 16, 1024), cluster, job_of("megatron", 8));
  cluster.device_types.push_back(samples::a100());
  cluster.devices[1].type = 1;
  const Problem mixed =
      samples::problem_of(samples::gpt(6, 1024, 16, 1024), cluster, job_of("megatron", 8));
  cluster.devices[0].type = 1;
  const Problem slow =
      samples::problem_of(samples::gpt(6, 1024, 16, 1024), cluster, job_of("megatron", 8));
  const Plan plan = pipeline({8}, 1, 2, 1);
  const auto pipeline_of = [&](const Problem& p) { return CostEngine(p).estimate(plan).pipeline; };
  EXPECT_EQ(pipeline_of(mixed), pipeline_of(slow));
  EXPECT_LT(pipeline_of(fast), pipeline_of(mixed));
}

TEST(Engine, TheSlowestOptimizerCounts) {
  Cluster cluster = samples::cluster_of(samples::h100(), 1, 2);
  cluster.device_types.push_back(samples::a100());
  cluster.devices[1].type = 1;
  Problem problem =
      samples::problem_of(samples::gpt(6, 1024, 16, 1024), cluster, job_of("megatron", 8));
  for (const DeviceType& type : cluster.device_types)
    for (const char* unit : {"embedding", "decoder", "head"})
      problem.profile.compute[{.unit = unit, .device_type = type.name, .micro_batch = 4}] = {
          .forward = Seconds(1e-3),
          .optimizer = Seconds(type.name == samples::a100().name ? 3e-3 : 1e-3)};
  const Estimate estimate = CostEngine(problem).estimate(pipeline({8}, 1, 2, 1));
  EXPECT_NEAR(estimate.stages[0].optimizer.value, 8 * 3e-3, 1e-9);
}

TEST(Engine, StagesThatEndEarlySynchroniseMeanwhile) {
  // The last stage ends its last backward before the first one does; its gradients are reduced
  // while the others still work, so the tail is what the first stage needs.
  const Problem problem =
      samples::problem_of(samples::gpt(6, 1024, 16, 1024),
                          samples::cluster_of(samples::a100(), 1, 8), job_of("megatron-lm", 8));
  const Plan plan = pipeline({4, 8}, 1, 4, 2);
  const Estimate estimate = CostEngine(problem).estimate(plan);
  const StageCost& first = estimate.stages[0];
  const StageCost& last = estimate.stages[1];
  EXPECT_LT(last.gradient_sync + last.optimizer,
            first.gradient_sync + first.optimizer + first.backward_total());
  EXPECT_NEAR(estimate.after_pipeline.value,
              (first.gradient_sync + first.optimizer + first.tied_sync).value, 1e-12);
}

TEST(Engine, GPipeHoldsTheSoftmaxOfEveryMicroBatch) {
  const Problem problem =
      samples::problem_of(samples::gpt(6, 1024, 16, 1024),
                          samples::cluster_of(samples::a100(), 1, 2), job_of("megatron", 8));
  Plan plan = pipeline({4, 8}, 1, 1, 8);
  const CostEngine engine(problem);
  const Bytes one = engine.estimate(plan).stages[1].workspace;
  plan.schedule = Schedule::gpipe;
  // Seven micro-batches wait with 4 bytes a logit; 1F1B's last stage has none that waits.
  EXPECT_NEAR((engine.estimate(plan).stages[1].workspace - one).value, 7 * 4.0 * 1024 * 50257, 1);
}

Problem over_network(double gigabytes_per_second, int batch) {
  Cluster cluster = samples::cluster_of(samples::a100(), 2, 4);
  for (Node& node : cluster.nodes)
    node.uplink.bandwidth = BytesPerSecond(gigabytes_per_second * 1e9);
  return samples::problem_of(samples::gpt(6, 1024, 16, 1024), cluster, job_of("megatron", batch));
}

// Plans that send much: replicas on both nodes, tensor groups across them, a pipeline over them.
std::vector<Plan> plans_over_network() {
  Plan across = pipeline({8}, 8, 1, 4);
  across.sequence_parallel = true;
  return {pipeline({8}, 1, 8, 1), pipeline({8}, 4, 2, 4), across, pipeline({4, 8}, 1, 4, 8)};
}

TEST(Engine, HalfTheBandwidthOfASaturatedNetworkNearlyDoublesTheStep) {
  const Problem slow = over_network(0.1, 32);
  const Problem slower = over_network(0.05, 32);
  for (const Plan& plan : plans_over_network()) {
    const double before = CostEngine(slow).simulate(plan).step.value;
    const double after = CostEngine(slower).simulate(plan).step.value;
    EXPECT_GT(after, 1.8 * before) << plan.stages.size() << " stages";
    EXPECT_LT(after, 2.001 * before);
  }
}

// The gradients of half of the devices cross the network in each direction, 4 bytes each: however
// long the backward pass, the wire needs its time.
TEST(Engine, NoStepIsShorterThanItsGradientsOnTheWire) {
  for (const double rate : {0.1, 1.0, 10.0, 100.0}) {
    const Problem problem = over_network(rate, 32);
    const Plan plan = pipeline({8}, 4, 2, 1);
    double parameters = 0;
    for (const int kind : problem.model.units)
      for (const Op& op : problem.model.kinds[kind].ops) parameters += op.parameters;
    EXPECT_GT(CostEngine(problem).simulate(plan).step.value, 4 * parameters / (rate * 1e9));
  }
}

}  // namespace
}  // namespace plait
