#include "cost/op/saved_bytes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plan/sample_frameworks.h"
#include "plan/sample_problems.h"

namespace plait {
namespace {

Job job_with(const char* framework, Precision precision) {
  Job job;
  job.global_batch = 1;
  job.framework = samples::framework(framework);
  job.precision = precision;
  return job;
}

const Op& op_named(const Model& model, const std::string& name) {
  for (const LayerKind& kind : model.kinds)
    for (const Op& op : kind.ops)
      if (op.name == name) return op;
  throw std::out_of_range(name);
}

double kept(const Model& model, const std::string& name, const char* framework,
            Precision precision) {
  return saved_bytes(job_with(framework, precision), model, op_named(model, name), {.samples = 1})
      .all.value;
}

TEST(SavedBytes, TransformerEngineKeepsInputsAsItMultipliesThem) {
  // 8192 positions of 1024; the MLP is 2048 wide and gated.
  const Model model = build_transformer(samples::llama(2, 1024, 2048, 8, 8));
  const auto megatron = [&](const std::string& name, Precision precision) {
    return kept(model, name, "megatron", precision);
  };
  EXPECT_EQ(megatron("mlp.up", Precision::bf16), 2.0 * 8192 * 1024);
  EXPECT_EQ(megatron("mlp.up", Precision::fp8), 1.0 * 8192 * 1024);
  EXPECT_EQ(megatron("mlp.down", Precision::fp4), 0.5 * 8192 * 2048);
  // Gate and up, which no product reads, stay in 16 bits.
  EXPECT_EQ(megatron("mlp.activation", Precision::fp8), 2.0 * 8192 * 2 * 2048);
  // Queries, keys and values; with fp8 also the result, of which the projection keeps a copy of one
  // byte; and 4 bytes a head and position.
  EXPECT_EQ(megatron("attention.core", Precision::bf16), 8192 * (2.0 * 3 * 1024 + 4 * 8));
  EXPECT_EQ(megatron("attention.core", Precision::fp8), 8192 * (2.0 * 4 * 1024 + 4 * 8));
  // TorchTitan converts the kept 16-bit input once more.
  EXPECT_EQ(kept(model, "mlp.up", "fsdp-compile", Precision::fp8), 2.0 * 8192 * 1024);
}

TEST(SavedBytes, ModulesOfPyTorchKeepWhatLiesBetweenTheirKernels) {
  const Model model = build_transformer(samples::llama(2, 1024, 2048, 8, 8));
  // An RMS norm its input in fp32 and the normalised value, where a fused one keeps the input.
  EXPECT_EQ(kept(model, "mlp.norm", "fsdp-compile", Precision::bf16), 2.0 * 8192 * 1024);
  EXPECT_EQ(kept(model, "mlp.norm", "fsdp", Precision::bf16), 6.0 * 8192 * 1024);
  // Gate, up, and silu of the gate.
  EXPECT_EQ(kept(model, "mlp.activation", "fsdp-compile", Precision::bf16), 4.0 * 8192 * 2048);
  EXPECT_EQ(kept(model, "mlp.activation", "fsdp", Precision::bf16), 6.0 * 8192 * 2048);
}

// Of a GPT's MLP, 4096 wide over 1024 positions: gelu keeps its input, relu its result, which is
// what the next product keeps.
TEST(SavedBytes, ReluKeepsNothingOfItsOwn) {
  TransformerConfig config;
  config.vocabulary = config.hidden = config.sequence = 1024;
  config.layers = 2;
  config.heads = 8;
  const auto activation = [&](Function function, const char* framework) {
    config.activation = function;
    return kept(build_transformer(config), "mlp.activation", framework, Precision::bf16);
  };
  for (const char* framework : {"megatron-lm", "plait", "eager"}) {
    EXPECT_EQ(activation(Function::gelu, framework), 2.0 * 1024 * 4096) << framework;
    EXPECT_EQ(activation(Function::relu, framework), 0) << framework;
  }
}

TEST(SavedBytes, ResultsOfExpertsAreKeptWhereTheyAreWeighedLast) {
  TransformerConfig config = samples::llama(2, 1024, 2048, 8, 8);
  config.moe = {.experts = 8, .top_k = 2, .ffn = 512};
  const Model model = build_transformer(config);
  EXPECT_EQ(kept(model, "experts.combine", "megatron", Precision::bf16), 0);
  // Two experts for each of 8192 positions.
  EXPECT_EQ(kept(model, "experts.combine", "eager", Precision::pure_bf16), 2.0 * 2 * 8192 * 1024);
}

}  // namespace
}  // namespace plait
