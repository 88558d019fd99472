#include "io/plan/accelerate_config.h"

#include <gtest/gtest.h>

#include "base/sample_complaint.h"

namespace plait {
namespace {

// What `accelerate config` writes for FSDP 1 on two machines.
const std::string kTwoMachines = R"(compute_environment: LOCAL_MACHINE
debug: false
distributed_type: FSDP   # not DeepSpeed
downcast_bf16: 'no'
fsdp_config:
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_offload_params: false
  fsdp_sharding_strategy: FULL_SHARD
gpu_ids:
- 0
- 1
mixed_precision: bf16
num_machines: 2
num_processes: 16
)";

AccelerateConfig read(const std::string& text, const DeepspeedFilled& told = {}) {
  return read_accelerate_config("a.yaml", text, told);
}

AccelerateConfig with(const std::string& lines) {
  return read("distributed_type: FSDP\nfsdp_config:\n" + lines);
}

std::string complaint(const std::string& text, const DeepspeedFilled& told = {}) {
  return samples::complaint([&] { read(text, told); });
}

TEST(AccelerateConfig, ReadsWhatItsOwnProgramWrites) {
  const AccelerateConfig config = read(kTwoMachines);
  EXPECT_EQ(config.layout.zero, ZeroStage::parameters);
  EXPECT_EQ(config.layout.precision, Precision::bf16);
  EXPECT_FALSE(config.layout.recomputes);
  EXPECT_FALSE(config.hybrid);
  EXPECT_EQ(config.machines, 2);
  EXPECT_EQ(config.processes, 16);
}

TEST(AccelerateConfig, EachStrategyIsAStageOfZero) {
  EXPECT_EQ(with("  fsdp_sharding_strategy: SHARD_GRAD_OP").layout.zero, ZeroStage::gradients);
  EXPECT_EQ(with("  fsdp_sharding_strategy: 3").layout.zero, ZeroStage::off);
  EXPECT_EQ(with("  fsdp_reshard_after_forward: true").layout.zero, ZeroStage::parameters);
  EXPECT_EQ(with("  fsdp_reshard_after_forward: false").layout.zero, ZeroStage::gradients);
  EXPECT_TRUE(with("  fsdp_sharding_strategy: HYBRID_SHARD").hybrid);
  EXPECT_TRUE(with("  fsdp_activation_checkpointing: true").layout.recomputes);
  EXPECT_EQ(read("distributed_type: MULTI_GPU\n").layout.zero, ZeroStage::off);
}

TEST(AccelerateConfig, SectionsMayStandInBracesAndKeysWithoutTheirPrefix) {
  const AccelerateConfig config = read(
      "distributed_type: FSDP\nfsdp_config: {fsdp_sharding_strategy: SHARD_GRAD_OP, "
      "activation_checkpointing: \"true\"}\nmixed_precision: fp16\n");
  EXPECT_EQ(config.layout.zero, ZeroStage::gradients);
  EXPECT_TRUE(config.layout.recomputes);
  EXPECT_EQ(config.layout.precision, Precision::fp16);
}

TEST(AccelerateConfig, ReplicasOfShardsAreAGroup) {
  const AccelerateConfig config = read(
      "distributed_type: FSDP\nparallelism_config:\n"
      "  parallelism_config_dp_replicate_size: 2\n  parallelism_config_dp_shard_size: 8\n");
  EXPECT_TRUE(config.hybrid);
  EXPECT_EQ(config.zero_group, 8);
}

TEST(AccelerateConfig, WhatIsToldStandsWhereTheFileSaysNothing) {
  DeepspeedFilled told;
  told.precision = Precision::fp16;
  told.recompute = Recompute::full;
  EXPECT_EQ(read("distributed_type: FSDP\n", told).layout.precision, Precision::fp16);
  EXPECT_TRUE(read("distributed_type: FSDP\n", told).layout.recomputes);
  EXPECT_EQ(read("distributed_type: FSDP\n").layout.precision, Precision::fp32);
  EXPECT_EQ(complaint(kTwoMachines, told),
            "a.yaml:12: mixed_precision is bf16, and `precision` is fp16: they must be the same");
}

TEST(AccelerateConfig, EachMistakeHasItsMessage) {
  EXPECT_EQ(complaint("mixed_precision: bf16\n"),
            "a.yaml: is no configuration of accelerate: distributed_type is missing");
  EXPECT_EQ(complaint("distributed_type: DEEPSPEED\n"),
            "a.yaml:1: DeepSpeed trains, not FSDP: its ds_config.json is read as `from` deepspeed");
  EXPECT_EQ(complaint("distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\n"
                      "  offload_optimizer_device: cpu\n"),
            "a.yaml:1: DeepSpeed trains, not FSDP: plait plan with `framework` deepspeed `zero` 3 "
            "`offload` 1, `model`, `data`, `micro_batch` and `micro_batches` prices it");
  EXPECT_EQ(complaint("distributed_type: XLA\n"),
            "a.yaml:1: distributed_type xla is not read: FSDP, MULTI_GPU and NO are");
  EXPECT_EQ(complaint("distributed_type: FSDP\nfsdp_config:\n  fsdp_offload_params: true\n"),
            std::string("a.yaml:3: ") + kParametersInHostMemory);
  EXPECT_EQ(complaint("distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: SOME\n"),
            "a.yaml:3: fsdp_sharding_strategy must be true, false, FULL_SHARD, SHARD_GRAD_OP, "
            "NO_SHARD, HYBRID_SHARD or HYBRID_SHARD_ZERO2, is 'some'");
  EXPECT_EQ(complaint("distributed_type: FSDP\nparallelism_config:\n"
                      "  parallelism_config_tp_size: 2\n"),
            "a.yaml:3: tp_size 2: plait has no words for FSDP2 with it");
  EXPECT_EQ(complaint("distributed_type: FSDP\nnum_processes: many\n"),
            "a.yaml:2: num_processes must be a whole number from 1 to 1000000, is 'many'");
  EXPECT_EQ(complaint("distributed_type: FSDP\nmixed_presicion: bf16\n"),
            "a.yaml:2: unknown key 'mixed_presicion' (did you mean 'mixed_precision'?)");
  EXPECT_EQ(complaint("distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_stategy: NO_SHARD\n"),
            "a.yaml:3: unknown key 'fsdp_sharding_stategy' (did you mean "
            "'fsdp_sharding_strategy'?)");
  EXPECT_EQ(complaint("distributed_type: FSDP\nfsdp_config:\n\tfsdp_version: 2\n"),
            "a.yaml:3: a tab is not YAML: put blanks before a key");
  EXPECT_EQ(complaint("distributed_type: FSDP\nfsdp_config: {fsdp_version: 2,\n"),
            "a.yaml:2: '{' is not closed on its line: write one key a line");
  EXPECT_EQ(complaint("distributed_type\n"),
            "a.yaml:1: is not 'key: value', as in accelerate's files");
  EXPECT_EQ(complaint("distributed_type: NO\ndistributed_type: NO\n"),
            "a.yaml:2: 'distributed_type' is there twice");
}

}  // namespace
}  // namespace plait
