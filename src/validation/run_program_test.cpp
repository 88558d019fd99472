#include <gtest/gtest.h>

#include "base/error.h"
#include "validation/cells/table_text.h"
#include "validation/sample_rows.h"

namespace plait {
namespace {

using samples::Cells;

Job job_of(const Cells& cells) { return samples::read(cells).problem->job; }

const Cells kAlone{{"tp", ""}, {"pp", ""}, {"dp", "16"}, {"date", "2025"}};

Cells with(Cells cells, const Cells& more) {
  for (const auto& [column, text] : more) cells[column] = text;
  return cells;
}

// The repository of FlashAttention trains GPTs whose layers are fused; who uses its kernels only
// has layers of his own.
TEST(RunPrograms, FlashAttentionHasLayersOfItsOwn) {
  const auto framework = [](const char* text) {
    return job_of(with(kAlone, {{"framework", text}})).framework.name;
  };
  EXPECT_EQ(framework("PyTorch Lightning + FlashAttention"), "flash-gpt");
  EXPECT_EQ(framework("Hugging Face + FlashAttention 2"), "eager");
  EXPECT_EQ(framework("PyTorch FSDP, flash-attention"), "fsdp");
  EXPECT_EQ(framework("DeepSpeed + FlashAttention"), "deepspeed");
}

TEST(RunPrograms, CompiledModulesAreNotKernelByKernel) {
  const auto framework = [](const Cells& cells) {
    return job_of(with(kAlone, cells)).framework.name;
  };
  EXPECT_EQ(framework({{"framework", "PyTorch DDP + torch.compile"}}), "fms-fsdp");
  EXPECT_EQ(framework({{"framework", "nanoGPT (torch.compile)"}}), "fms-fsdp");
  EXPECT_EQ(framework({{"framework", "nanoGPT"}, {"compile", "True"}}), "fms-fsdp");
  EXPECT_EQ(framework({{"framework", "nanoGPT"}}), "eager");
}

// Until jax.nn called cuDNN's, JAX had fused attention from Transformer Engine alone; what XLA's
// scheduler hides came later than its programs.
TEST(RunPrograms, JaxIsThatOfItsTime) {
  const auto attention = [](const char* date, const char* precision) {
    return job_of(
               with(kAlone, {{"framework", "Paxml/JAX"}, {"date", date}, {"precision", precision}}))
        .attention;
  };
  EXPECT_EQ(attention("2024-04", "bf16"), AttentionKernel::plain);
  EXPECT_EQ(attention("2024-04", "TE bf16"), AttentionKernel::flash);
  EXPECT_EQ(attention("2025-01", "bf16"), AttentionKernel::flash);
  EXPECT_FALSE(job_of(with(kAlone, {{"framework", "T5X"}, {"date", "2023"}})).overlap);
  EXPECT_TRUE(job_of(with(kAlone, {{"framework", "MaxText"}, {"date", "2024-05"}})).overlap);
}

// A row without a date is of today, unless it ran on what today's programs are not made for.
TEST(RunPrograms, ThoseWithoutADateAreOfToday) {
  const auto job = [](const std::string& program, const std::string& date, const std::string& gpu) {
    return samples::read({{"framework", program}, {"date", date}, {"gpu", gpu}}).problem->job;
  };
  EXPECT_EQ(job("", "", "H100").framework.name, "megatron");
  EXPECT_EQ(job("", "", "A100-80GB").framework.name, "megatron");
  EXPECT_EQ(job("", "", "V100-32GB").framework.name, "megatron-lm");
  EXPECT_EQ(job("", "2022", "A100-80GB").framework.name, "megatron-lm");
  EXPECT_EQ(job("Megatron-LM", "", "H100").attention, AttentionKernel::flash);
  EXPECT_EQ(job("Megatron-LM", "", "A100-80GB").attention, AttentionKernel::plain);
  EXPECT_EQ(job("Megatron-LM", "2022-11", "H100").attention, AttentionKernel::plain);
}

TEST(RunDevices, NodesOfDevicesAreCounted) {
  const auto cluster = [](const std::string& gpu) {
    const MeasuredRun run =
        samples::read({{"gpu", gpu}, {"num_gpus", ""}, {"gpus_per_node", ""}, {"dp", ""}});
    EXPECT_EQ(run.refusal, "") << gpu;
    return run.problem->cluster;
  };
  const Cluster alike = cluster("4 nodes of 4x A100-80GB");
  EXPECT_EQ(alike.nodes.size(), 4u);
  EXPECT_EQ(alike.device_count(), 16);
  const Cluster mixed = cluster("2 machines with 8 V100-32GB and 1 node of 8xP100");
  EXPECT_EQ(mixed.nodes.size(), 3u);
  EXPECT_EQ(mixed.device_count(), 24);
}

// 13 B on 16 devices of 40 GB fit with recompute only.
TEST(RunPrograms, WhatFitsIsTakenWhereNothingIsStated) {
  const MeasuredRun run = samples::read(with(kAlone, {{"framework", "DeepSpeed"},
                                                      {"dp_sharding", "ZeRO-3"},
                                                      {"model", "Llama-2-13B"},
                                                      {"n_layers", ""},
                                                      {"hidden", ""},
                                                      {"n_heads", ""},
                                                      {"vocab", ""},
                                                      {"seq_len", "4096"},
                                                      {"gpu", "A100-40GB"},
                                                      {"mbs", "2"},
                                                      {"gbs", "32"},
                                                      {"recompute", ""}}));
  ASSERT_TRUE(run.problem) << run.refusal;
  EXPECT_EQ(run.plan.stages[0].spans[1].recompute, Recompute::full);
  EXPECT_EQ(run.assumptions.back(), "full recompute, without which it does not fit in memory");
}

TEST(TableText, OfAPageIsReadWithoutWhatStandsAroundIt) {
  const CsvTable table =
      parse_table("page.md",
                  "# Results, 2025\n\nOn one machine:\n\n| model | gpus |\n|---|--:|\n"
                  "| gpt2 | 8 |\n| bert | 4 |\n\nThat is all, or nearly so.\n");
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.header[1], "gpus");
  EXPECT_EQ(table.cell(table.rows[1], "gpus"), "4");
}

TEST(TableText, OfAPageWithTwoTablesIsRefused) {
  try {
    parse_table("page.md", "| a |\n|---|\n| 1 |\n\n| b |\n|---|\n| 2 |\n");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("more than one table"), std::string::npos);
  }
}

// Utilisation of the hardware counts what is computed twice: of 4 passes over the layers, of which
// 3 are the model's.
TEST(RunPrograms, FlopsOfTheHardwareAreReadWhereAllIsComputedTwice) {
  const auto step = [](const char* convention, const char* recompute) {
    Cells cells = samples::gpt_row();
    cells.erase("iter_time_s");
    cells["tflops_per_gpu"] = "100";
    cells["flops_convention"] = convention;
    cells["recompute"] = recompute;
    return read_published_runs("t.csv", samples::table_of(cells))[0].step;
  };
  const double model = step("model", "full")->value;
  EXPECT_NEAR(step("hardware (includes recompute)", "full")->value / model, 4.0 / 3, 0.03);
  EXPECT_EQ(step("hardware", "none")->value, model);
  EXPECT_FALSE(step("hardware", "selective"));
}

// What a logbook of a trainer of Hugging Face exports.
TEST(RunPrograms, RatesOfALogbookAreRead) {
  Cells cells = samples::gpt_row();
  cells.erase("iter_time_s");
  cells["train/train_steps_per_second"] = "0.5";
  const std::vector<MeasuredRun> runs = read_published_runs("t.csv", samples::table_of(cells));
  ASSERT_TRUE(runs[0].step) << runs[0].refusal;
  EXPECT_DOUBLE_EQ(runs[0].step->value, 2);
}

}  // namespace
}  // namespace plait
