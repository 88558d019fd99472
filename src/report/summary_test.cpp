#include "report/summary.h"

#include <gtest/gtest.h>

#include "plan/sample_plans.h"

namespace plait {
namespace {

TEST(Summary, LayersAreAllUnitsButEmbeddingAndHead) {
  const Model model = samples::sample_model(6);
  EXPECT_EQ(model.unit_count(), 8);
  EXPECT_EQ(layer_count(model), 6);
  EXPECT_FALSE(is_layer({.name = "embedding.table", .ops = {}, .output = 0}));
}

TEST(Summary, EqualNodesAreCounted) {
  // Three nodes of eight at $32.77 an hour, one of them fast.
  EXPECT_EQ(summary_of(samples::sample_cluster(3, 1)),
            "1 x 8 Fast + 2 x 8 Slow: 24 GPUs in 2 zones, $98.31 an hour");
}

TEST(Summary, PriceIsLeftOutWhereOneIsUnknown) {
  Cluster cluster = samples::sample_cluster(2, 2);
  cluster.nodes[1].price = {};
  EXPECT_EQ(summary_of(cluster), "2 x 8 Fast: 16 GPUs in 2 zones");
}

TEST(Summary, BatchIsGivenInTokensToo) {
  // 16 samples of 1024 tokens.
  Problem problem = samples::sample_problem();
  problem.job.framework.name = problem.job.framework.target = "megatron";
  EXPECT_EQ(summary_of(problem),
            "global batch 16 (16,384 tokens), bf16, adam, flash attention, as megatron runs it");
}

TEST(Summary, ASpeedIsNotSaidToBeAProgramThatRunsThePlan) {
  Problem problem = samples::sample_problem();
  problem.job.framework.name = problem.job.framework.target = "megatron";
  const auto ends_with = [&](std::string_view target, std::string_view words) {
    return summary_of(problem, target).ends_with(words);
  };
  EXPECT_TRUE(ends_with("megatron", "attention, as megatron runs it"));
  EXPECT_TRUE(ends_with("any", ", at the speed of megatron, whichever program runs it"));
  EXPECT_TRUE(ends_with("plait", ", as plait runs it, at the speed of megatron"));
  problem.job.framework.name = "nanotron";  // which runs on Megatron's row
  EXPECT_TRUE(ends_with("", ", as megatron runs it, at the speed of nanotron"));
}

TEST(Summary, SaysWhereSpeedsComeFrom) {
  Problem problem = samples::sample_problem();
  problem.cluster.device_types.resize(2);
  problem.cluster.device_types[0].name = "H100";
  problem.cluster.device_types[0].basis = "fitted";
  problem.cluster.device_types[1].name = "V100";
  problem.cluster.device_types[1].basis = "copied from A100";
  EXPECT_EQ(how_sure(problem),
            "speeds: H100 fitted to published runs; V100 copied from A100, not fitted itself");
}

TEST(Summary, DevicesOfAStageAreCountedByType) {
  const Cluster cluster = samples::sample_cluster(2, 1);
  EXPECT_EQ(types_of(cluster, {DeviceId{0}, DeviceId{8}, DeviceId{9}}), "1 Fast + 2 Slow");
}

}  // namespace
}  // namespace plait
