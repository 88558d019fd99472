#include "io/plan/deepspeed_config.h"

#include <gtest/gtest.h>

#include "base/sample_complaint.h"
#include "plan/sample_plans.h"

namespace plait {
namespace {

// Eight devices, six layers.
Problem one_node() {
  Problem problem = samples::sample_problem();
  problem.cluster = samples::sample_cluster(1, 1);
  return problem;
}

ConfiguredPlan plan_of(const std::string& text) {
  return deepspeed_plan("ds.json", read_deepspeed_config("ds.json", text), one_node());
}

std::string complaint(const std::string& text) {
  return samples::complaint([&] { plan_of(text); });
}

TEST(DeepspeedConfig, TwoBatchSizesGiveTheThird) {
  // 64 samples over 8 replicas of 2 are 4 micro-batches.
  const ConfiguredPlan plan =
      plan_of(R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2})");
  EXPECT_EQ(plan.plan.micro_batches, 4);
  EXPECT_EQ(plan.plan.stages.front().spans.front().data, 8);
  EXPECT_EQ(plan_of(R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4})")
                .global_batch,
            64);
  EXPECT_EQ(plan_of(R"({"train_batch_size": 64})").plan.micro_batches, 1);
}

TEST(DeepspeedConfig, ZeroOffloadPrecisionAndPipelineAreRead) {
  const std::string text = R"({"train_batch_size": 16, "train_micro_batch_size_per_gpu": 2,
    "bf16": {"enabled": true}, "zero_optimization": {"stage": 1,
    "offload_optimizer": {"device": "cpu", "ratio": 0.5}}, "pipeline": {"stages": 4,
    "activation_checkpoint_interval": 1}, "optimizer": {"type": "SGD"}})";
  const DeepspeedConfig config = read_deepspeed_config("ds.json", text);
  EXPECT_EQ(config.precision, Precision::bf16);
  EXPECT_EQ(config.optimizer, Optimizer::sgd);
  const Plan plan = plan_of(text).plan;
  EXPECT_EQ(plan.zero, ZeroStage::optimizer);
  EXPECT_EQ(plan.offload, 0.5);
  ASSERT_EQ(plan.stage_count(), 4);  // six layers: 2, 2, 1, 1, with embedding and head 3, 2, 1, 2
  EXPECT_EQ(plan.stages[0].spans[0].units, (UnitRange{0, 3}));
  EXPECT_EQ(plan.stages[3].spans[0].units, (UnitRange{6, 8}));
  EXPECT_EQ(plan.stages[0].spans[0].recompute, Recompute::full);
}

TEST(DeepspeedConfig, ContradictingBatchSizesAreRefused) {
  EXPECT_EQ(complaint(R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 3,
      "gradient_accumulation_steps": 2})"),
            "ds.json: batch sizes contradict: train_batch_size 64 is not "
            "train_micro_batch_size_per_gpu 3 x gradient_accumulation_steps 2 x 8 replicas");
  EXPECT_EQ(complaint(R"({"gradient_accumulation_steps": 2})"),
            "ds.json: train_batch_size or train_micro_batch_size_per_gpu is missing");
}

TEST(DeepspeedConfig, CommentsUnknownKeysAndAutoAreNamed) {
  EXPECT_EQ(complaint("{\n  // two\n  \"train_batch_size\": 8}"),
            "ds.json:2: a comment is not JSON; take it out");
  EXPECT_EQ(complaint(R"({"train_batch_sise": 8})"),
            "ds.json#: unknown key 'train_batch_sise' (did you mean 'train_batch_size'?)");
  EXPECT_EQ(
      complaint(R"({"train_batch_size": "auto"})"),
      "ds.json#/train_batch_size: is 'auto', which another program fills in: give the number");
  EXPECT_EQ(complaint(R"({"train_batch_size": 8, "tensor_parallel": {"autotp_size": 2}})"),
            "ds.json#/tensor_parallel: plait has no words for it; leave it out");
}

}  // namespace
}  // namespace plait
