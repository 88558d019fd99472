#include "io/plan/deepspeed_config.h"

#include <fmt/format.h>
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
    "offload_optimizer": {"device": "cpu"}}, "pipeline": {"stages": 4,
    "activation_checkpoint_interval": 1}, "optimizer": {"type": "SGD"}})";
  const DeepspeedConfig config = read_deepspeed_config("ds.json", text);
  EXPECT_EQ(config.precision, Precision::bf16);
  EXPECT_EQ(config.optimizer, Optimizer::sgd);
  const Plan plan = plan_of(text).plan;
  EXPECT_EQ(plan.zero, ZeroStage::optimizer);
  EXPECT_EQ(plan.offload, 1);
  ASSERT_EQ(plan.stage_count(), 4);  // six layers: 2, 2, 1, 1, with embedding and head 3, 2, 1, 2
  EXPECT_EQ(plan.stages[0].spans[0].units, (UnitRange{0, 3}));
  EXPECT_EQ(plan.stages[3].spans[0].units, (UnitRange{6, 8}));
  EXPECT_EQ(plan.stages[0].spans[0].recompute, Recompute::full);
}

TEST(DeepspeedConfig, APartInHostMemoryIsForZero3) {
  for (const int stage : {2, 3}) {
    const DeepspeedConfig config = read_deepspeed_config(
        "ds.json", fmt::format(R"({{"train_batch_size": 16, "zero_optimization": {{"stage": {},
        "offload_optimizer": {{"device": "cpu", "ratio": 0.5}}}}}})",
                               stage));
    EXPECT_EQ(config.offload, stage == 3 ? 0.5 : 1);
    EXPECT_EQ(config.warnings.size(), stage == 3 ? 0U : 1U);
  }
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
  EXPECT_EQ(complaint(R"({"train_batch_size": 8, "tensor_parallel": {"autotp_size": 2}})"),
            "ds.json#/tensor_parallel: plait has no words for it; leave it out");
}

// As Hugging Face's examples have it.
constexpr const char* kAutomatic = R"({"train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
    "gradient_clipping": "auto", "fp16": {"enabled": "auto"}, "bf16": {"enabled": "auto"},
    "zero_optimization": {"stage": 2, "reduce_bucket_size": "auto"},
    "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto"}}})";

DeepspeedConfig filled(const std::string& text, const DeepspeedFilled& told) {
  return read_deepspeed_config("ds.json", text, told);
}

std::string complaint(const std::string& text, const DeepspeedFilled& told) {
  return samples::complaint([&] { filled(text, told); });
}

// deepspeed/runtime/zero/config.py forbids other keys, too.
TEST(DeepspeedConfig, KeysOfZeroAreChecked) {
  EXPECT_EQ(complaint(R"({"train_batch_size": 64, "zero_optimization": {"stge": 2}})"),
            "ds.json#/zero_optimization: unknown key 'stge' (did you mean 'stage'?)");
  const DeepspeedConfig hybrid =
      read_deepspeed_config("ds.json", R"({"train_batch_size": 64, "bfloat16": {"enabled": true},
        "communication_data_type": "fp32",
        "zero_optimization": {"stage": 3, "mics_shard_size": 4, "zero_hpz_partition_size": 8}})");
  EXPECT_EQ(hybrid.precision, Precision::bf16);
  EXPECT_EQ(hybrid.zero_group, 4);
  EXPECT_EQ(hybrid.reduce_bytes, 4);
  ASSERT_EQ(hybrid.warnings.size(), 1u);
  EXPECT_EQ(hybrid.warnings[0],
            "the second copy of parameters (zero_hpz_partition_size) is not priced");
  EXPECT_EQ(complaint(R"({"train_batch_size": 64, "communication_data_type": "int8"})"),
            "ds.json#/communication_data_type: must be fp16, bf16 or fp32");
}

TEST(DeepspeedConfig, AutoIsWhatTheProgramWasTold) {
  const DeepspeedConfig config = filled(kAutomatic, {.sizes = {.micro_batch = 2, .accumulation = 4},
                                                     .precision = Precision::bf16,
                                                     .recompute = Recompute::full});
  EXPECT_EQ(config.precision, Precision::bf16);
  EXPECT_TRUE(config.recomputes);
  const ConfiguredPlan plan = deepspeed_plan("ds.json", config, one_node());
  EXPECT_EQ(plan.global_batch, 64);  // 2 x 4 on each of 8 replicas
  EXPECT_EQ(plan.plan.zero, ZeroStage::gradients);
  // What the file leaves out may be told as well; fp32 is what neither section enables.
  EXPECT_EQ(filled(R"({"train_batch_size": 16})", {.sizes = {.micro_batch = 1}}).sizes.micro_batch,
            1);
  EXPECT_EQ(filled(R"({"train_batch_size": 16, "fp16": {"enabled": "auto"}})",
                   {.precision = Precision::tf32})
                .precision,
            Precision::tf32);
}

TEST(DeepspeedConfig, AutoThatNobodyFillsInIsRefusedAllAtOnce) {
  const std::string begin =
      "ds.json: has 'auto', which the program that starts DeepSpeed fills in: give ";
  EXPECT_EQ(complaint(kAutomatic, {}),
            begin + "two of `micro_batch`, `micro_batches` and `global_batch`, and `precision`");
  EXPECT_EQ(complaint(kAutomatic, {.sizes = {.batch = 64}, .precision = Precision::fp16}),
            begin + "`micro_batch` or `micro_batches`");
  EXPECT_EQ(complaint(kAutomatic, {.sizes = {.batch = 64, .micro_batch = 2}}),
            begin + "`precision`");
}

TEST(DeepspeedConfig, WhatIsToldMustNotContradictTheFile) {
  EXPECT_EQ(complaint(R"({"train_batch_size": 64})", {.sizes = {.batch = 32}}),
            "ds.json#/train_batch_size: is 64, and `global_batch` is 32: they must be the same");
  EXPECT_EQ(complaint(R"({"train_batch_size": 64, "bf16": {"enabled": true}})",
                      {.precision = Precision::fp16}),
            "ds.json: `precision` is fp16, which its sections fp16 and bf16 do not allow");
  EXPECT_EQ(complaint(R"({"train_batch_size": 64, "fp16": {"enabled": "auto"}})",
                      {.precision = Precision::bf16}),
            "ds.json: `precision` is bf16, which its sections fp16 and bf16 do not allow");
  EXPECT_EQ(complaint(R"({"train_batch_size": 64, "activation_checkpointing": {}})",
                      {.recompute = Recompute::none}),
            "ds.json: says that activations are recomputed, and `recompute` is none");
}

}  // namespace
}  // namespace plait
