#include "cost/stage_cost.h"

#include <gtest/gtest.h>

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
Seconds sent_in(const char* framework, int nodes, int tensor) {
  TransformerConfig config;
  config.vocabulary = 1024;
  config.layers = 2;
  config.hidden = 1024;
  config.heads = 8;
  Problem problem;
  problem.model = build_transformer(config);
  problem.cluster = nodes_of_eight(nodes);
  problem.job.global_batch = 1;
  problem.job.framework = samples::framework(framework);
  Plan plan;
  for (int s = 0; s < 2; ++s) {
    Stage stage;
    stage.spans = {{.units = {2 * s, 2 * s + 2}, .tensor = tensor}};
    for (int d = 0; d < tensor; ++d) stage.devices.push_back(static_cast<DeviceId>(s * tensor + d));
    plan.stages.push_back(stage);
  }
  return hand_over_time(problem, plan, plan.stages[0], plan.stages[1], 2);
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

}  // namespace
}  // namespace plait
