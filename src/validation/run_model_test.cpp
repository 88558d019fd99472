#include <gtest/gtest.h>

#include "base/error.h"
#include "plan/check.h"
#include "validation/sample_rows.h"

namespace plait {
namespace {

using samples::Cells;
using samples::gpt_row;
using samples::read;
using samples::table_of;

TEST(PublishedRuns, KnownModelsFillEmptyColumns) {
  const MeasuredRun run = read({{"model", "DeepSeekV3-L4"},
                                {"framework", "Megatron-Core"},
                                {"n_layers", "4"},
                                {"hidden", ""},
                                {"n_heads", ""},
                                {"vocab", ""},
                                {"seq_len", "4096"},
                                {"ep", "4"},
                                {"pp", "1"},
                                {"dp", "8"}});
  ASSERT_TRUE(run.problem) << run.refusal;
  // Embedding, one layer without experts, three with, head.
  EXPECT_EQ(run.problem->model.unit_count(), 6);
  EXPECT_EQ(run.problem->model.unit(1).name, "decoder");
  EXPECT_EQ(run.problem->model.unit(2).name, "moe_decoder");
  EXPECT_EQ(run.plan.expert, 4);
  EXPECT_EQ(run.plan.zero, ZeroStage::optimizer);
  EXPECT_TRUE(run.plan.sequence_parallel);
}

TEST(PublishedRuns, FsdpKeepsWeightsGatheredBetweenTheMicroBatchesOfAPipeline) {
  const Cells fsdp{{"framework", "torchtitan"}, {"dp_sharding", "FSDP2 (ZeRO-3)"}};
  EXPECT_EQ(read(fsdp).plan.zero, ZeroStage::optimizer);
  Cells alone = fsdp;
  alone["pp"] = "1";
  alone["dp"] = "8";
  EXPECT_EQ(read(alone).plan.zero, ZeroStage::parameters);
}

TEST(PublishedRuns, MixturesRunWithTheGraphsOfTheirRecipes) {
  const auto framework = [](const std::string& gpu, const std::string& date) {
    return read({{"framework", "Megatron-Bridge / Megatron-Core"},
                 {"model", "Qwen3_30B_a3B"},
                 {"gpu", gpu},
                 {"date", date},
                 {"n_layers", ""},
                 {"hidden", ""},
                 {"n_heads", ""},
                 {"vocab", ""},
                 {"ep", "4"}})
        .problem->job.framework.name;
  };
  EXPECT_EQ(framework("GB200", "2025-05"), "megatron");
  EXPECT_EQ(framework("GB200", "2025-11"), "megatron-router");
  EXPECT_EQ(framework("B300", "2025-11"), "megatron");
  EXPECT_EQ(framework("B300", "2026-06"), "megatron-graph");
}

TEST(PublishedRuns, EncodersAndImagesAreReadWhenTheyAreKnown) {
  const Cells alone{{"framework", "eager PyTorch"},
                    {"n_layers", ""},
                    {"hidden", ""},
                    {"n_heads", ""},
                    {"vocab", ""},
                    {"num_gpus", "1"},
                    {"tp", "1"},
                    {"pp", "1"},
                    {"dp", "1"}};
  const auto units = [&](const std::string& model, const std::string& sequence) {
    Cells cells = alone;
    cells["model"] = model;
    cells["seq_len"] = sequence;
    const MeasuredRun run = read(cells);
    return run.problem ? run.problem->model.unit_count() : 0;
  };
  EXPECT_EQ(units("google-bert/bert-base-uncased", "512"), 14);  // 12 layers, embedding, head
  EXPECT_EQ(units("vit-base", "197"), 14);                       // as many positions as patches
  EXPECT_GE(units("t5-base", "512"), 24);                        // 12 encoders and 12 decoders
  EXPECT_EQ(units("distilbert-base", "512"), 0);
}

TEST(PublishedRuns, T5IsTrainedOnShortTargets) {
  const auto work = [](const std::string& task) {
    const MeasuredRun run = read({{"model", "t5-base"},
                                  {"framework", "T5X"},
                                  {"n_layers", ""},
                                  {"hidden", ""},
                                  {"n_heads", ""},
                                  {"vocab", ""},
                                  {"seq_len", "512"},
                                  {"num_gpus", "1"},
                                  {"tp", "1"},
                                  {"pp", "1"},
                                  {"dp", "1"},
                                  {"task", task}});
    double flops = 0;
    for (int u = 0; u < run.problem->model.unit_count(); ++u)
      for (const Op& op : run.problem->model.unit(u).ops) flops += op.forward.value;
    return flops;
  };
  // The encoder's share of a step with targets as long as the inputs is 42 %, the loss included.
  EXPECT_NEAR(work("pretrain") / work("finetune"), 0.55, 0.08);
}

TEST(PublishedRuns, RecipesDecideWhatIsKeptOfGradientsAndLogits) {
  const Job bridge = read({{"framework", "Megatron-Bridge / Megatron-Core"}}).problem->job;
  EXPECT_EQ(bridge.gradient_bytes, 2);
  EXPECT_EQ(bridge.logit_bytes, 4);
  const Job core = read({{"framework", "Megatron-LM 0.14 (core)"}}).problem->job;
  EXPECT_EQ(core.gradient_bytes, 0);
  EXPECT_EQ(core.logit_bytes, 0);
  EXPECT_EQ(read({{"framework", "llm-foundry (PyTorch FSDP)"}}).problem->job.logit_bytes, 4);
}

TEST(PublishedRuns, LayersFollowFromParametersWhereTheyAreNotStated) {
  // 24 layers of 12 * 2048^2 and a table of 51200 x 2048: 1.313e9; in 2 stages 12 each.
  const MeasuredRun run = read({{"n_layers", ""}, {"params_b", "1.3"}});
  ASSERT_TRUE(run.problem) << run.refusal;
  EXPECT_EQ(run.problem->model.unit_count(), 26);
  EXPECT_EQ(run.assumptions[0], "24 layers, by the parameters");
}

TEST(PublishedRuns, NetworksAreReadFromTheirDescription) {
  const auto uplink = [](const std::string& text) {
    return read({{"interconnect", text}}).problem->cluster.nodes[0].uplink.bandwidth.value;
  };
  EXPECT_DOUBLE_EQ(uplink("800 Gb/s inter-node"), 100e9);
  EXPECT_DOUBLE_EQ(uplink("4x100Gb RoCE per node"), 50e9);
  EXPECT_DOUBLE_EQ(uplink("RoCE 400 Gbps per GPU"), 400e9);
  EXPECT_DOUBLE_EQ(uplink("Jean Zay: 4 OmniPath links per node"), 50e9);
  EXPECT_DOUBLE_EQ(uplink("Selene"), 200e9);  // the catalogue's: 200 Gbit/s for each of 8
}

TEST(PublishedRuns, HeadsOfGpt2Are64Wide) {
  const MeasuredRun run = read({{"model", "GPT2-350M-class"}, {"hidden", "1024"}, {"n_heads", ""}});
  ASSERT_TRUE(run.problem) << run.refusal;
  for (const Op& op : run.problem->model.unit(1).ops)
    if (op.kind == OpKind::attention) {
      EXPECT_EQ(op.count, 16);
    }
}

}  // namespace
}  // namespace plait
