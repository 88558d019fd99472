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

// "8x H100", machines by name, nodes times devices: the same 16 devices.
TEST(RunWords, DevicesAreCountedInManyWays) {
  const Cells open{{"num_gpus", ""}, {"gpus_per_node", ""}};
  const auto with = [&](Cells more) {
    for (const auto& [column, value] : open) more.emplace(column, value);
    return samples::read(more);
  };
  for (const Cells& cells :
       {Cells{{"gpu", "16x A100-80GB"}}, Cells{{"nodes", "2"}, {"gpus_per_node", "8"}},
        Cells{{"nodes", "2"}, {"gpu", "8x A100-80GB"}},
        Cells{{"instance", "2x p4de.24xlarge"}, {"gpu", ""}}}) {
    const MeasuredRun run = with(cells);
    ASSERT_TRUE(run.problem) << run.refusal;
    EXPECT_EQ(run.problem->cluster.device_count(), 16);
    EXPECT_EQ(run.problem->cluster.nodes.size(), 2u);
  }
  EXPECT_EQ(with({{"instance", "2x abacus.large"}}).refusal,
            "the instance 'abacus.large' is not in the catalogue");
  EXPECT_EQ(with({}).refusal, "num_gpus is not stated");
}

// Three machines of four V100 and one of four T4 in the wordings that tables have.
TEST(RunWords, MixedClustersAreListedInManyWays) {
  Cells cells{{"gpus_per_node", "4"}, {"recompute", "none"}};
  for (const char* gpu :
       {"3x p3.8xlarge + 1x g4dn.12xlarge", "V100 (p3.8xlarge x3) + T4 (g4dn.12xlarge x1)",
        "V100x12;T4x4", "12 V100 + 4 T4", "12xV100, 4xT4", "V100 x 12 and T4 x 4"}) {
    cells["gpu"] = gpu;
    const MeasuredRun run = samples::read(cells);
    ASSERT_TRUE(run.problem) << gpu << ": " << run.refusal;
    const Cluster& cluster = run.problem->cluster;
    EXPECT_EQ(cluster.nodes.size(), 4u) << gpu;
    ASSERT_EQ(cluster.device_types.size(), 2u) << gpu;
    EXPECT_EQ(cluster.device_types[0].name, "V100-16GB") << gpu;
    EXPECT_EQ(cluster.device_types[1].name, "T4") << gpu;
  }
  // What is stated of the network holds for devices, not for machines, which have their own.
  cells["interconnect"] = "50 Gb/s";
  const auto uplink = [&](const char* gpu) {
    cells["gpu"] = gpu;
    return samples::read(cells).problem->cluster.nodes[0].uplink.bandwidth;
  };
  EXPECT_EQ(uplink("V100x12;T4x4"), BytesPerSecond(50e9 / 8));
  EXPECT_EQ(uplink("3x p3.8xlarge + 1x g4dn.12xlarge"), BytesPerSecond(10e9 / 8));
  cells["gpu"] = "A100-80GB/V100";
  EXPECT_EQ(samples::read(cells).refusal,
            "runs on several device types, and how many of each is not stated");
  cells["gpu"] = "12xV100 + 8xT4";
  EXPECT_NE(samples::read(cells).refusal.find("have 20 devices, num_gpus is 16"),
            std::string::npos);
}

TEST(RunWords, DegreesOfOneColumn) {
  const Cells open{{"tp", ""}, {"pp", ""}, {"dp", ""}};
  const auto with = [&](const std::string& text) {
    Cells cells = open;
    cells["parallelism"] = text;
    return samples::read(cells);
  };
  for (const char* text : {"TP2 PP2 DP4", "tp=2, pp=2", "TP 2 / PP 2"})
    EXPECT_EQ(with(text).plan, samples::read({}).plan) << text;
  EXPECT_EQ(with("2/2/4").refusal, "parallelism is '2/2/4', not like 'TP4 PP2 DP4' or 'FSDP'");
  EXPECT_EQ(samples::read({{"parallelism", "TP4"}}).refusal, "parallelism says tp 4, its column 2");
}

TEST(RunWords, ColumnsHaveUnits) {
  const std::string begin = "model,n_layers,hidden,n_heads,gpu,num_gpus,tp,pp,gbs,mbs,seq_len,";
  const std::string values = "\nGPT,24,2048,16,A100-80GB,16,2,2,64,2,";
  const auto run = [&](const std::string& column, const std::string& cell) {
    return read_published_runs("runs.csv", begin + column + values + "1k," + cell + "\n", {}).at(0);
  };
  for (const auto& [column, cell] : {std::pair{"iter_time_s", "1.5"},
                                     {"step_time_ms", "1500"},
                                     {"time per step (ms)", "\"1,500\""},
                                     {"s/it", "1.5"},
                                     {"Step time", "1500 ms"},
                                     {"it/s", "0.6666666667"}}) {
    const MeasuredRun found = run(column, cell);
    ASSERT_TRUE(found.step) << column << ": " << found.refusal;
    EXPECT_NEAR(found.step->value, 1.5, 1e-9) << column;
  }
  EXPECT_NE(run("Step time", "1500").refusal.find("without a unit"), std::string::npos);
  EXPECT_EQ(run("peak memory (MiB)", "40960").memory, Bytes(40 * 0x1p30));
  // 64 samples of 1024 tokens a second on 16 devices.
  EXPECT_NEAR(run("Tokens / sec / GPU", "4.096k").step->value, 1, 1e-9);
  EXPECT_TRUE(run("iter_time_s", "OOM").failed);
}

TEST(RunWords, ColumnsThatPlayNoPartAreTold) {
  EXPECT_EQ(unread_columns("runs.csv", "model,num_gpus,Colour,Peak memory (GiB),locator\n"),
            std::vector<std::string>{"Colour"});
}

// 55 % of the peak without and 74 % with what is computed twice: all layers; 38 and 47 %: .71.
TEST(RunWords, RecomputedLayersFollowFromTheUtilisations) {
  const auto repeated = [](const std::string& mfu, const std::string& hfu) {
    const MeasuredRun run = samples::read({{"framework", "PyTorch FSDP"},
                                           {"tp", ""},
                                           {"pp", ""},
                                           {"dp", "16"},
                                           {"recompute", "selective"},
                                           {"mfu_pct", mfu},
                                           {"hfu_pct", hfu}});
    int layers = 0;
    for (const Span& span : run.plan.stages.at(0).spans)
      if (span.recompute == Recompute::full) layers += span.units.size();
    return layers;
  };
  EXPECT_EQ(repeated("55", "74"), 24);
  EXPECT_EQ(repeated("38", "47"), 18);  // of 26 units
  EXPECT_EQ(repeated("", ""), 0);
}

// A head of 131,072 x 3072 counts as 3.55 layers of 4 x 3072^2 + 3 x 3072 x 8192: of 31.55 the
// first of two stages takes layers until it is above 15.8.
TEST(RunWords, NanotronCutsByCost) {
  const MeasuredRun run = samples::read({{"framework", "nanotron"},
                                         {"model", "Llama-3.57B"},
                                         {"n_layers", "28"},
                                         {"hidden", "3072"},
                                         {"ffn_hidden", "8192"},
                                         {"n_heads", "32"},
                                         {"vocab", "131072"},
                                         {"tp", "1"},
                                         {"dp", "8"}});
  ASSERT_TRUE(run.problem) << run.refusal;
  ASSERT_EQ(run.plan.stages.size(), 2u);
  EXPECT_EQ(run.plan.stages[0].spans.back().units.end, 1 + 16);
}

std::vector<MeasuredRun> table(const std::string& text) {
  return read_published_runs("runs.csv", text, {});
}

// What people write into tables of their own, in their own columns.
TEST(StrangersTables, CellsThatSaySeveralThings) {
  const std::vector<MeasuredRun> runs = table(
      "Model,GPUs,Sequence length,Batch size (tokens),Through put (tokens/sec),framework\n"
      "GPT3-1.3B,8 x A100 80GB SXM4,2048,1M,169k,PyTorch Lightning\n"
      "GPT 1.3B,8x A100 (80G),2048,1M,169k,PyTorch Lightning\n");
  for (const MeasuredRun& run : runs) {
    ASSERT_TRUE(run.problem) << run.refusal;
    EXPECT_EQ(run.device, "A100-80GB");
    EXPECT_EQ(run.problem->cluster.device_count(), 8);
    EXPECT_EQ(run.problem->model.name, run.id == "2" ? "GPT3-1.3B" : "GPT 1.3B");
    EXPECT_EQ(run.problem->job.global_batch, 512);
    EXPECT_NEAR(run.step->value, 512 * 2048 / 169e3, 1e-9);
  }
}

TEST(StrangersTables, ThroughputsWithTheirUnits) {
  const std::string begin = "model,gpu,num_gpus,seq,global batch,framework,speed\n";
  const auto seconds = [&](const std::string& cell) {
    const MeasuredRun run =
        table(begin + "llama-2-7b,A100-80GB,8,2048,128,FSDP," + cell + "\n").at(0);
    return run.step ? run.step->value : 0;
  };
  EXPECT_NEAR(seconds("3200 tokens/s/GPU"), 10.24, 1e-9);
  EXPECT_NEAR(seconds("\"25,600 tokens/s\""), 10.24, 1e-9);
  EXPECT_NEAR(seconds("12.5 samples/s"), 10.24, 1e-9);
  EXPECT_NEAR(seconds("10.24 s/it"), 10.24, 1e-9);
  EXPECT_NE(table(begin + "llama-2-7b,A100-80GB,8,2048,128,FSDP,3100\n")
                .at(0)
                .refusal.find("whose unit is not understood"),
            std::string::npos);
  const std::string each = "model,gpu,num_gpus,seq,gbs,framework,samples/s/GPU\n";
  EXPECT_NEAR(table(each + "llama-2-7b,A100-80GB,8,2048,128,FSDP,1.6\n").at(0).step->value, 10,
              1e-9);
}

// The memory that a device has is not the peak of a run.
TEST(StrangersTables, ColumnsWithANameOfTheirOwnKeepIt) {
  EXPECT_FALSE(samples::read({{"gpu", "A100"}, {"gpu_mem_gb", "40"}}).memory);
}

// Columns whose names may mean something else spoil nothing beside those that are sure.
TEST(StrangersTables, NumbersOfStepsAndRelativeSpeedsAreNoTimes) {
  const MeasuredRun run = table(
                              "model,gpu,num_gpus,seq,gbs,framework,step,speed,tokens/s\n"
                              "llama-2-7b,A100-80GB,8,2048,128,FSDP,100,1.3x,25600\n")
                              .at(0);
  ASSERT_TRUE(run.step) << run.refusal;
  EXPECT_NEAR(run.step->value, 10.24, 1e-9);
}

TEST(StrangersTables, NumbersBesideTheDeviceThatTheyCount) {
  EXPECT_EQ(samples::read({{"num_gpus", "16x A100"}}).problem->cluster.device_count(), 16);
  EXPECT_NE(samples::read({{"num_gpus", "16 apples"}}).refusal.find("num_gpus is '16 apples'"),
            std::string::npos);
}

// Columns of logs: of Hugging Face's trainer, of Weights & Biases.
TEST(StrangersTables, ColumnsOfLogs) {
  const MeasuredRun trainer =
      table(
          "model_name_or_path,per_device_train_batch_size,gradient_accumulation_steps,world_size,"
          "max_source_length,fp16,train_samples_per_second,gpu_name\n"
          "gpt2-medium,8,4,4,512,True,128,Tesla V100-SXM2-32GB\n")
          .at(0);
  ASSERT_TRUE(trainer.problem) << trainer.refusal;
  EXPECT_EQ(trainer.problem->job.framework.name, "eager");
  EXPECT_EQ(trainer.problem->job.precision, Precision::fp16);
  EXPECT_EQ(trainer.problem->job.global_batch, 128);
  EXPECT_NEAR(trainer.step->value, 1, 1e-9);
  const MeasuredRun logged =
      table(
          "Name,GPU Type,GPU Count,config.model.n_layer,config.model.n_head,config.model.n_embd,"
          "config.data.block_size,config.batch_size,config.gradient_accumulation_steps,"
          "config.framework,summary.iter_ms\n"
          "run-7,NVIDIA A100-SXM4-40GB,8,12,12,768,1024,12,40,PyTorch DDP,245.0\n")
          .at(0);
  ASSERT_TRUE(logged.problem) << logged.refusal;
  EXPECT_EQ(logged.problem->job.global_batch, 12 * 40 * 8);
  EXPECT_NEAR(logged.step->value, 0.245, 1e-9);
}

// A batch of 14 on 8 devices is that of one of them; one of 32 may be that of all.
TEST(StrangersTables, BatchesOfOneDeviceOrOfAll) {
  const auto batch = [](const std::string& size) {
    return table("Model,GPUs,BS,SeqLen,Method,Step Time [s]\nGPT-2 XL,8x H200," + size +
                 ",1024,FSDP,5\n")
        .at(0)
        .problem->job.global_batch;
  };
  EXPECT_EQ(batch("14"), 112);
  EXPECT_EQ(batch("32"), 32);
}

TEST(StrangersTables, FailuresStandWhereResultsShould) {
  const std::vector<MeasuredRun> runs = table(
      "Model,GPUs,Method,BS,SeqLen,tokens/s\n"
      "gpt2-xl,4x3090,DDP,32,1024,OOM\ngpt2-large,4x3090,ZeRO-3,32,1024,9000\n");
  EXPECT_TRUE(runs.at(0).failed);
  EXPECT_EQ(runs.at(1).plan.zero, ZeroStage::parameters);
  EXPECT_EQ(runs.at(1).problem->cluster.device_count(), 4);
}

// Where nothing is computed twice, both ways to count flops are one.
TEST(StrangersTables, FlopsThatHaveOneMeaning) {
  const auto run = [](const std::string& recompute) {
    return samples::read(
        {{"iter_time_s", ""}, {"tflops_per_gpu", "150"}, {"recompute", recompute}});
  };
  EXPECT_TRUE(run("none").step);
  EXPECT_NE(run("full").refusal.find("flops_convention"), std::string::npos);
}

// Programs of their time: there was no flash attention before May 2022, PyTorch had it from 2.0 on,
// and NeMo had Megatron-LM's layers until 2023.
TEST(StrangersTables, ProgramsAreThoseOfTheirTime) {
  const auto job = [](const std::string& program, const std::string& date) {
    return samples::read(
               {{"framework", program}, {"date", date}, {"tp", "1"}, {"pp", "1"}, {"dp", "16"}})
        .problem->job;
  };
  EXPECT_EQ(job("DeepSpeed", "2021-11").attention, AttentionKernel::plain);
  EXPECT_EQ(job("DeepSpeed", "2024-01").attention, AttentionKernel::flash);
  EXPECT_EQ(job("DeepSpeed + FlashAttention", "2022-12").attention, AttentionKernel::flash);
  EXPECT_EQ(job("NeMo", "2022-11").framework.name, "megatron-lm");
  EXPECT_EQ(job("NeMo", "2023-08").framework.name, "megatron");
}

TEST(StrangersTables, MicroBatchesThatFit) {
  const MeasuredRun run = table(
                              "model,gpu,num_gpus,seq,gbs,framework,step (s)\n"
                              "gpt-3-1.3b,A100-80GB,8,2048,512,PyTorch DDP,6.2\n")
                              .at(0);
  ASSERT_TRUE(run.problem) << run.refusal;
  EXPECT_GT(run.plan.micro_batches, 1);
  EXPECT_NE(run.assumptions.back().find("larger ones do not fit"), std::string::npos);
}

}  // namespace
}  // namespace plait
