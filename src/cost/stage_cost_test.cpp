#include "cost/stage_cost.h"

#include <gtest/gtest.h>

#include <map>

#include "model/transformer.h"
#include "plan/sample_frameworks.h"

namespace plait {
namespace {

// Eight devices a node; what a node reaches of its links is 0.8.
Cluster nodes_of_eight(int nodes) {
  Cluster cluster;
  DeviceType type;
  type.intra = {BytesPerSecond(300e9), Seconds(0)};
  type.memory = Bytes(0x1p36);
  cluster.device_types = {type};
  cluster.zones = {"zone"};
  for (int n = 0; n < nodes; ++n) {
    cluster.nodes.push_back({.intra = type.intra, .uplink = {BytesPerSecond(200e9), Seconds(0)}});
    for (int d = 0; d < 8; ++d) cluster.devices.push_back({.type = 0, .node = n});
  }
  return cluster;
}

// Two stages of `tensor` devices each, on the first devices of the cluster.
Seconds sent_in(const Framework& framework, int nodes, int tensor) {
  TransformerConfig config;
  config.vocabulary = 1024;
  config.layers = 2;
  config.hidden = 1024;
  config.heads = 8;
  Problem problem;
  problem.model = build_transformer(config);
  problem.cluster = nodes_of_eight(nodes);
  problem.job.global_batch = 1;
  problem.job.framework = framework;
  Plan plan;
  for (int s = 0; s < 2; ++s) {
    Stage stage;
    stage.spans = {{.units = {2 * s, 2 * s + 2}, .tensor = tensor}};
    for (int d = 0; d < tensor; ++d) stage.devices.push_back(static_cast<DeviceId>(s * tensor + d));
    plan.stages.push_back(stage);
  }
  return hand_over_time(problem, plan, plan.stages[0], plan.stages[1], 2);
}

Seconds sent_in(const char* framework, int nodes, int tensor) {
  return sent_in(samples::framework(framework), nodes, tensor);
}

TEST(HandOver, BetweenNodesMegatronSendsItsPartFromEveryDevice) {
  // 1024 x 1024 in 16 bits are 2 MiB. All eight devices of a node share 200 GB/s, of which 0.8
  // are reached: 2 MiB / 160 GB/s when each sends an eighth, eight times that when each sends all.
  const double part = 0x1p21 / 160e9;
  const Seconds cut = sent_in("megatron-lm", 2, 8);
  const Seconds whole = sent_in("eager", 2, 8);
  EXPECT_NEAR((whole - cut).value, 7 * part, 1e-9);
}

TEST(HandOver, InsideANodeEveryDeviceSendsAll) {
  EXPECT_EQ(sent_in("megatron-lm", 1, 4), sent_in("eager", 1, 4));
}

// There the activation and the mask, back a gradient: 1.5 tensors each way, and one more when they
// are cut over a tensor group, as their part and where it belongs.
TEST(HandOver, DeepspeedsPipelineWaitsForEveryTensor) {
  Framework framework = samples::framework("deepspeed-3d");
  const auto waits = [&](int tensor) {
    framework.traits.send_wait = Seconds(1);
    const Seconds with = sent_in(framework, 1, tensor);
    framework.traits.send_wait = Seconds(0);
    return (with - sent_in(framework, 1, tensor)).value;
  };
  EXPECT_NEAR(waits(1), 1.5, 1e-9);
  EXPECT_NEAR(waits(2), 2.5, 1e-9);
  framework.traits.sends_mask = false;
  EXPECT_NEAR(waits(1), 1, 1e-9);
}

// One stage of ten units on two of eight devices of a node, in spans that end at these units.
StageCost stage_of_spans(ZeroStage zero, const std::vector<std::pair<int, Recompute>>& ends) {
  TransformerConfig config;
  config.vocabulary = 1024;
  config.layers = 8;
  config.hidden = 1024;
  config.heads = 8;
  Problem problem;
  problem.model = build_transformer(config);
  problem.cluster = nodes_of_eight(1);
  DeviceType& type = problem.cluster.device_types.front();
  type.memory_bandwidth = BytesPerSecond(1e12);
  type.peak.fill(FlopsPerSecond(1e14));
  problem.job.global_batch = 8;
  problem.job.framework = samples::framework("megatron-lm");
  Plan plan;
  plan.micro_batches = 4;
  plan.zero = zero;
  Stage stage;
  stage.devices = {DeviceId{0}, DeviceId{1}};
  int begin = 0;
  for (const auto& [end, recompute] : ends) {
    stage.spans.push_back({.units = {begin, end}, .data = 2, .recompute = recompute});
    begin = end;
  }
  plan.stages = {stage};
  std::map<ReplicaShape, UnitTable> tables;
  return stage_cost(problem, plan, 0,
                    [&](const ReplicaShape& shape) -> const UnitTable& {
                      return tables.try_emplace(shape, problem, shape).first->second;
                    })
      .cost;
}

TEST(StageCost, SpansThatAreCutAlikeCostWhatOneOfThemWould) {
  using enum Recompute;
  for (const ZeroStage zero : {ZeroStage::off, ZeroStage::optimizer, ZeroStage::parameters})
    for (const Recompute recompute : {none, full}) {
      const StageCost one = stage_of_spans(zero, {{10, recompute}});
      const StageCost three =
          stage_of_spans(zero, {{3, recompute}, {6, recompute}, {10, recompute}});
      EXPECT_NEAR(three.gradient_sync / one.gradient_sync, 1, 1e-12);
      EXPECT_NEAR(three.optimizer / one.optimizer, 1, 1e-12);
      EXPECT_NEAR(three.backward_total() / one.backward_total(), 1, 1e-12);
      EXPECT_NEAR(three.spare() / one.spare(), 1, 1e-12);
    }
}

TEST(StageCost, EveryRecomputedLayerAddsTheSameTimeAndSparesTheSameMemory) {
  using enum Recompute;
  // The embedding is the first unit; k + 1 units have k layers.
  std::vector<StageCost> costs;
  for (int k = 1; k <= 7; ++k)
    costs.push_back(stage_of_spans(ZeroStage::optimizer, {{k + 1, full}, {10, none}}));
  const Seconds time = costs[1].recompute - costs[0].recompute;
  const Bytes bytes = costs[0].activations - costs[1].activations;
  EXPECT_GT(time, Seconds(0));
  EXPECT_GT(bytes, Bytes(0));
  for (std::size_t k = 1; k < costs.size(); ++k) {
    EXPECT_NEAR((costs[k].recompute - costs[k - 1].recompute) / time, 1, 1e-9) << k;
    EXPECT_NEAR((costs[k - 1].activations - costs[k].activations) / bytes, 1, 1e-9) << k;
  }
}

}  // namespace
}  // namespace plait
