#include "search/space/pins.h"

#include <gtest/gtest.h>

#include "plan/sample_plans.h"
#include "search/space/space.h"

namespace plait {
namespace {

// 8 units (6 layers, embedding, head), 8 heads, 1024 tokens, batch 16, 2 nodes of 8 devices.
Problem problem() { return samples::sample_problem(); }

std::string words(const Pins& pins, const Problem& of = problem()) {
  const auto violation = violation_of(of, pins);
  return violation ? in_words(*violation) : "";
}

TEST(Pins, NoPinsAreNoViolation) { EXPECT_EQ(words({}), ""); }

TEST(Pins, ATensorDegreeMustCutTheModelEvenly) {
  EXPECT_EQ(words({.tensor = 4}), "");
  // 3 divides the 1536 features of qkv (512 each), but not the 8 heads.
  EXPECT_EQ(words({.tensor = 3}), "`tensor`: 3 does not divide the 8 heads of decoder.attention");
}

TEST(Pins, ATensorDegreeMustFitNodes) {
  Problem sixes = problem();
  for (Device& device : sixes.cluster.devices) device.node = 0;
  // One node with 8 devices of each type: 16 devices have no group of one type of that size.
  EXPECT_NE(words({.tensor = 16}, sixes), "");
  EXPECT_EQ(violation_of(sixes, {.tensor = 16})->dimension, Dimension::tensor);
}

TEST(Pins, DegreesMustNotNeedMoreDevicesThanThereAre) {
  // 4 x 2 x 4 = 32 of 16.
  EXPECT_EQ(words({.tensor = 4, .pipeline = 2, .data = 4}),
            "`tensor`: 4 x `pipeline` 2 x `data` 4 needs 32 devices, the cluster has 16");
  EXPECT_EQ(words({.tensor = 4, .pipeline = 2, .data = 2}), "");
  // A pinned cut of the units says how many stages there are.
  EXPECT_EQ(words({.data = 4, .stages = {2, 2, 1, 1, 2}}),
            "`stages`: 5 x `data` 4 needs 20 devices, the cluster has 16");
}

TEST(Pins, StagesMustHaveAllUnits) {
  EXPECT_EQ(words({.stages = {4, 4}}), "");
  EXPECT_EQ(words({.stages = {4, 3}}),
            "`stages`: adds up to 7; sample has 6 layers, or 8 units with embedding and head");
  EXPECT_EQ(words({.pipeline = 9}),
            "`pipeline`: 9 is more than the 8 units of the model (layers, embedding and head)");
  EXPECT_EQ(words({.pipeline = 3, .stages = {4, 4}}),
            "`stages`: has 2 stages, but `pipeline` is 3");
}

TEST(Pins, BatchesMustMultiplyToTheGlobalBatch) {
  EXPECT_EQ(words({.micro_batches = 3}),
            "`micro_batches`: 3 does not divide the global batch of 16");
  EXPECT_EQ(words({.micro_batch = 3}), "`micro_batch`: 3 does not divide the global batch of 16");
  EXPECT_EQ(words({.data = 2, .micro_batch = 4, .micro_batches = 4}),
            "`global_batch`: is 16, but `data` 2 x `micro_batch` 4 x `micro_batches` 4 is 32");
  EXPECT_EQ(words({.data = 2, .micro_batch = 4, .micro_batches = 2}), "");
  // 4 x 8 = 32 samples in a micro-batch of all replicas, of 16.
  EXPECT_EQ(words({.data = 4, .micro_batch = 8}),
            "`data`: 4 x `micro_batch` 8 does not divide the global batch of 16");
}

TEST(Pins, HugeBatchesDoNotOverflow) {
  EXPECT_NE(words({.data = 1'000'000, .micro_batch = 16, .micro_batches = 16}), "");
  EXPECT_EQ(violation_among({.data = 1'000'000, .micro_batch = 1'000'000}, 1'000'000)->dimension,
            Dimension::data);
}

TEST(Pins, EqualReplicasShareTheBatchEqually) {
  Problem equal = problem();
  equal.cluster = samples::sample_cluster(1, 1);
  EXPECT_EQ(words({.data = 3}, equal), "`data`: 3 does not divide the global batch of 16");
  // Two kinds of device may take unequal shares.
  EXPECT_EQ(words({.data = 3}), "");
}

TEST(Pins, OnlySomeSchedulesCutStagesIntoChunks) {
  EXPECT_EQ(words({.chunks = 2}), "`chunks`: 2 needs `schedule` interleaved");
  EXPECT_EQ(words({.schedule = Schedule::one_f_one_b, .chunks = 2}),
            "`chunks`: schedule 1f1b has 1 in each stage");
  EXPECT_EQ(words({.schedule = Schedule::zb_v, .chunks = 3}),
            "`chunks`: schedule zb-v has 2 in each stage");
  EXPECT_EQ(words({.schedule = Schedule::interleaved, .chunks = 1}),
            "`chunks`: schedule interleaved has at least 2 in each stage");
  EXPECT_EQ(words({.schedule = Schedule::interleaved, .chunks = 2}), "");
  EXPECT_EQ(words({.schedule = Schedule::zb_v, .chunks = 2}), "");
  EXPECT_EQ(words({.pipeline = 1, .schedule = Schedule::interleaved}),
            "`schedule`: interleaved needs at least 2 stages");
  EXPECT_EQ(words({.schedule = Schedule::zb_v, .stages = {4, 4}}),
            "`schedule`: zb-v cuts stages into chunks, `stages` cannot say how");
}

TEST(Pins, ContextAndExpertsMustDivideWhatTheyCut) {
  EXPECT_EQ(words({.context = 3}), "`context`: 3 does not divide the sequence length of 1024");
  EXPECT_EQ(words({.expert = 2}), "`expert`: 2 needs a model with experts");
  Problem sparse = problem();
  sparse.model = samples::sample_model(6, 8);
  EXPECT_EQ(words({.expert = 3}, sparse), "`expert`: 3 does not divide the 8 experts");
  EXPECT_EQ(words({.expert = 4}, sparse), "");
}

TEST(Pins, ASpaceWithAViolationIsEmpty) {
  const Problem of = problem();
  const Space space(of, {.tensor = 3});
  EXPECT_EQ(space.violation(), violation_of(of, {.tensor = 3}));
  EXPECT_TRUE(space.settings().empty());
  EXPECT_FALSE(Space(of, {}).violation());
}

TEST(Pins, WhatATargetLacksNamesThoseThatHaveIt) {
  const auto violation =
      violation_of(problem(), {.zero = ZeroStage::parameters}, *target_named("megatron"));
  ASSERT_TRUE(violation);
  EXPECT_EQ(in_words(*violation),
            "`zero`: 3 is not possible: Megatron-LM has ZeRO 0 and 1 (`framework` "
            "megatron-deepspeed, deepspeed, fsdp, torchtitan, jax can, `runs_on` any leaves it "
            "open)");
}

TEST(Pins, WhatUsesWholeNodesNeedsDegreesThatFitThem) {
  const Target& megatron = *target_named("megatron");
  const auto words_of = [&](const Pins& pins) {
    const auto violation = violation_of(problem(), pins, megatron);
    return violation ? in_words(*violation) : "";
  };
  const std::string multiple = words_of({.pipeline = 5});
  EXPECT_TRUE(multiple.starts_with(
      "`pipeline`: 5 is not possible: Megatron-LM uses all devices of a node or none, and no nodes "
      "together have a multiple of 5 (`framework` "))
      << multiple;
  EXPECT_EQ(words_of({.pipeline = 4}), "");
  EXPECT_EQ(words_of({.tensor = 2, .pipeline = 2, .data = 2, .context = 1}), "");
  const std::string exactly = words_of({.tensor = 2, .pipeline = 2, .data = 1, .context = 1});
  EXPECT_NE(exactly.find("together have 4 ("), std::string::npos) << exactly;
  EXPECT_EQ(words({.pipeline = 5}), "");
}

// Nodes of 8, 8 and 6 devices: 6, 8, 14, 16 and 22 are whole ones.
TEST(Pins, NodesOfSeveralSizesMayBeCombined) {
  Problem odd = problem();
  Cluster& cluster = odd.cluster;
  cluster.nodes.push_back(cluster.nodes.front());
  for (int d = 0; d < 6; ++d)
    cluster.devices.push_back({.type = cluster.devices.front().type, .node = 2});
  const Target& megatron = *target_named("megatron");
  for (const int stages : {2, 3, 4, 6, 7})
    EXPECT_FALSE(violation_of(odd, {.pipeline = stages}, megatron)) << stages;
  EXPECT_TRUE(violation_of(odd, {.pipeline = 5}, megatron));
}

}  // namespace
}  // namespace plait
