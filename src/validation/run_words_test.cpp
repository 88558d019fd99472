#include <gtest/gtest.h>

#include "base/error.h"
#include "validation/sample_rows.h"

namespace plait {
namespace {

using samples::Cells;

std::string framework_of_cell(const std::string& text) {
  return samples::read({{"framework", text}}).problem->job.framework.name;
}

// What tables call a program, and whose constants it has.
TEST(RunWords, ProgramsAreKnownByTheirNames) {
  EXPECT_EQ(framework_of_cell("NeMo AutoModel (PyTorch FSDP2, TE)"), "automodel");
  EXPECT_EQ(framework_of_cell("nanotron (PyTorch, Megatron-like)"), "nanotron");
  EXPECT_EQ(framework_of_cell("Primus (Megatron-LM backend)"), "megatron");
  EXPECT_EQ(framework_of_cell("Primus (TorchTitan backend)"), "fsdp2");
  EXPECT_EQ(framework_of_cell("Megatron-LM 0.14 (core)"), "megatron");
  EXPECT_EQ(framework_of_cell("Megatron-LM (commit 285068c8)"), "megatron-lm");
  EXPECT_EQ(framework_of_cell("Lit-GPT + FSDP"), "fsdp");
  EXPECT_EQ(framework_of_cell("torchtune 0.4"), "fsdp2");
  EXPECT_EQ(framework_of_cell("LLaMA-Factory 0.9"), "eager");
  EXPECT_EQ(framework_of_cell("LLaMA Factory (DeepSpeed ZeRO-3)"), "deepspeed");
  EXPECT_EQ(framework_of_cell("DeepSpeed 3D (modified)"), "deepspeed-3d");
  EXPECT_EQ(framework_of_cell("Aceso runtime"), "aceso");
}

// A name inside another word is not a name.
TEST(RunWords, OtherProgramsRunAsThoseThatCutAlike) {
  EXPECT_EQ(framework_of_cell("ScatterLab trainer"), "megatron-lm");  // tp 2, pp 2
  const Cells alone{{"framework", "ours"}, {"tp", ""}, {"pp", ""}, {"dp", "16"}};
  const auto named = [&](const std::string& sharding) {
    Cells cells = alone;
    cells["dp_sharding"] = sharding;
    return samples::read(cells);
  };
  EXPECT_EQ(named("ZeRO-3").problem->job.framework.name, "deepspeed");
  EXPECT_EQ(named("FSDP2").problem->job.framework.name, "fsdp2");
  EXPECT_EQ(named("").problem->job.framework.name, "eager");
  EXPECT_EQ(named("FSDP").assumptions.at(0), "a program like PyTorch's FSDP");
}

TEST(RunWords, DegreesThatHaveOneReading) {
  const auto stage_count = [](const Cells& cells) {
    return samples::read(cells).plan.stages.size();
  };
  EXPECT_EQ(stage_count({{"tp", ""}, {"pp", ""}, {"dp", "16"}}), 1);
  const Cells sharded{{"framework", "torchtune"}, {"tp", ""}, {"pp", ""}, {"dp", ""}};
  Cells cells = sharded;
  cells["dp_sharding"] = "FSDP";
  const MeasuredRun run = samples::read(cells);
  EXPECT_EQ(run.plan.stages[0].spans[0].data, 16);
  EXPECT_EQ(run.assumptions.at(0), "tp 1 and pp 1");
  // Megatron-LM, or replicas that leave devices over: several readings.
  cells["framework"] = "Megatron-LM";
  EXPECT_EQ(samples::read(cells).refusal, "tp and pp are not stated");
  cells = sharded;
  cells["dp"] = "4";
  EXPECT_EQ(samples::read(cells).refusal, "tp and pp are not stated");
}

TEST(RunWords, RecomputeIsSaidInManyWays) {
  const auto kind = [](const std::string& text) {
    return samples::read({{"recompute", text}}).plan.stages[0].spans.back().recompute;
  };
  for (const char* text : {"gradient checkpointing", "on", "Yes", "true", "AC", "full AC",
                           "uniform, 1 layer", "activation checkpointing (all)", "1"})
    EXPECT_EQ(kind(text), Recompute::full) << text;
  for (const char* text : {"none", "off", "No", "without checkpointing", "checkpointing: off",
                           "no gradient checkpointing", "disabled", "false"})
    EXPECT_EQ(kind(text), Recompute::none) << text;
  for (const char* text : {"selective", "AC=selective", "SAC", "core_attn"})
    EXPECT_EQ(kind(text), Recompute::selective) << text;
}

TEST(RunWords, ShardedStatesAreSaidInManyWays) {
  const auto stage = [](const std::string& text) {
    return samples::read({{"dp_sharding", text}}).plan.zero;
  };
  for (const char* text : {"ZeRO-3", "zero3", "ZeRO stage 3", "deepspeed stage3", "FULL_SHARD"})
    EXPECT_EQ(stage(text), ZeroStage::parameters) << text;
  for (const char* text : {"ZeRO-2", "Z2", "SHARD_GRAD_OP", "zero_stage=2", "2"})
    EXPECT_EQ(stage(text), ZeroStage::gradients) << text;
  for (const char* text : {"ZeRO-1", "distributed optimizer", "zero 1 (all ranks)"})
    EXPECT_EQ(stage(text), ZeroStage::optimizer) << text;
  for (const char* text : {"none", "DDP", "NO_SHARD", ""})
    EXPECT_EQ(stage(text), ZeroStage::off) << text;
}

TEST(RunWords, ColumnsHaveTheNamesOfOtherPrograms) {
  const std::string values = "\n1,GPT,24,2048,16,1024,A100-80GB,16,2,2,64,2,1.5,A\n";
  const auto runs = [&](const std::string& header) {
    return read_published_runs("runs.csv", header + values, {});
  };
  const std::vector<MeasuredRun> own = runs(
      "row_id,model,n_layers,hidden,n_heads,seq_len,gpu,num_gpus,tp,pp,gbs,mbs,iter_time_s,"
      "quality");
  const std::vector<MeasuredRun> theirs = runs(
      "row_id,Model,num_layers,hidden_size,num-attention-heads,Sequence length,GPU type,GPUs,"
      "tensor_model_parallel_size,pipeline_model_parallel_size,global_batch_size,"
      "micro_batch_size,step_time_s,quality");
  EXPECT_EQ(own.at(0).refusal, "");
  EXPECT_EQ(theirs.at(0).plan, own.at(0).plan);
  EXPECT_EQ(theirs.at(0).step, own.at(0).step);
  EXPECT_THROW(runs("row_id,model,n_layers,hidden,n_heads,seq_len,gpu,num_gpus,tp,pp,"
                    "global_batch,global_batch_size,iter_time_s,quality"),
               InputError);
}

TEST(RunWords, PrecisionsAndDevices) {
  const auto precision = [](const std::string& text) {
    return samples::read({{"precision", text}}).problem->job.precision;
  };
  EXPECT_EQ(precision("bfloat16"), Precision::bf16);
  EXPECT_EQ(precision("16-mixed"), Precision::fp16);
  EXPECT_EQ(precision("bf16-mixed"), Precision::bf16);
  EXPECT_EQ(precision("bf16-true"), Precision::pure_bf16);
  EXPECT_EQ(precision("float8 tensorwise"), Precision::fp8);
  for (const char* name : {"16x A100 80GB SXM", "A100 SXM4 80GB x16", "NVIDIA A100-80GB"})
    EXPECT_EQ(samples::read({{"gpu", name}}).device, "A100-80GB") << name;
}

}  // namespace
}  // namespace plait
