#include "validation/published_runs.h"

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

std::vector<int> units_of_stages(const Plan& plan) {
  std::vector<int> out;
  for (const Stage& stage : plan.stages) {
    int units = 0;
    for (const Span& span : stage.spans) units += span.units.size();
    out.push_back(units);
  }
  return out;
}

TEST(PublishedRuns, ACompleteRowIsTakenAsItStands) {
  const MeasuredRun run = read({});
  ASSERT_TRUE(run.problem) << run.refusal;
  EXPECT_EQ(run.id, "7");
  EXPECT_EQ(run.source, "somebody");
  EXPECT_EQ(run.device, "A100-80GB");
  EXPECT_EQ(run.problem->model.unit_count(), 26);
  EXPECT_EQ(run.problem->cluster.device_count(), 16);
  EXPECT_EQ(run.problem->cluster.nodes.size(), 2u);
  EXPECT_EQ(run.problem->job.global_batch, 64);
  EXPECT_EQ(run.problem->job.precision, Precision::fp16);
  EXPECT_EQ(run.problem->job.attention, AttentionKernel::plain);
  // 64 samples in micro-batches of 2 on each of 4 replicas.
  EXPECT_EQ(run.plan.micro_batches, 8);
  EXPECT_EQ(units_of_stages(run.plan), (std::vector{13, 13}));
  EXPECT_EQ(run.plan.stages[0].spans.back().recompute, Recompute::full);
  EXPECT_EQ(run.plan.stages[1].spans.back().recompute, Recompute::none);  // the head
  EXPECT_TRUE(check_plan(*run.problem, run.plan).empty());
  EXPECT_EQ(run.step, Seconds(1.5));
  EXPECT_FALSE(run.failed);
}

TEST(PublishedRuns, RowsOfOneProblemShareIt) {
  Cells other = gpt_row();
  other["tp"] = "4";
  other["dp"] = "2";
  const std::string first = table_of(gpt_row());
  const std::string second = table_of(other);
  const auto runs = read_published_runs("runs.csv", first + second.substr(second.find('\n') + 1));
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].problem, runs[1].problem);
  EXPECT_EQ(runs[0].job, runs[1].job);
}

TEST(PublishedRuns, TimesMayFollowFromRates) {
  // 64 x 1024 tokens at 4096 tokens/s on each of 16 devices: 1 s.
  EXPECT_EQ(read({{"iter_time_s", ""}, {"tokens_per_s_per_gpu", "4096"}}).step, Seconds(1));
  EXPECT_EQ(read({{"iter_time_s", ""}, {"tokens_per_s_total", "32768"}}).step, Seconds(2));
  EXPECT_EQ(read({{"iter_time_s", ""}, {"samples_per_s", "16"}}).step, Seconds(4));
  EXPECT_EQ(read({{"iter_time_s", ""}, {"iter_time_derived_s", "3"}}).step, Seconds(3));
}

TEST(PublishedRuns, SplitsOfLayersAreUnderstood) {
  const Cells four{{"pp", "4"}, {"dp", "2"}};
  const auto split = [&](const std::string& text) {
    Cells cells = four;
    cells["layer_split"] = text;
    const MeasuredRun run = read(cells);
    EXPECT_TRUE(run.problem) << run.refusal;
    return units_of_stages(run.plan);
  };
  EXPECT_EQ(split(""), (std::vector{7, 6, 6, 7}));
  // Layers only: the embedding joins the first stage, the head the last.
  EXPECT_EQ(split("5|7|7|5"), (std::vector{6, 7, 7, 6}));
  // 26 = 24 layers, embedding and head.
  EXPECT_EQ(split("5|7|7|7"), (std::vector{5, 7, 7, 7}));
  // 30 pseudo-layers of AMP: two before and four after the layers.
  EXPECT_EQ(split("8|6|6|10"), (std::vector{7, 6, 6, 7}));
}

TEST(PublishedRuns, AStageOfPseudoLayersOnlyGetsALayerOfTheNext) {
  const MeasuredRun run = read({{"pp", "4"}, {"dp", "2"}, {"layer_split", "1|1|14|14"}});
  ASSERT_TRUE(run.problem) << run.refusal;
  EXPECT_EQ(units_of_stages(run.plan), (std::vector{1, 1, 13, 11}));
}

TEST(PublishedRuns, UnevenLayersCountEmbeddingAndLossWhereThatComesOutEven) {
  // 22 layers in 8 stages of 3 units, as in the zero-bubble paper.
  EXPECT_EQ(units_of_stages(read({{"n_layers", "22"}, {"tp", "1"}, {"pp", "8"}, {"dp", "2"}}).plan),
            (std::vector{3, 3, 3, 3, 3, 3, 3, 3}));
  // 25 layers in 2 stages: the first takes the odd one, the last has the head.
  EXPECT_EQ(units_of_stages(read({{"n_layers", "25"}}).plan), (std::vector{14, 13}));
}

TEST(PublishedRuns, InterleavedChunksFollowFromVpp) {
  const MeasuredRun run = read({{"vpp", "3"}});
  ASSERT_TRUE(run.problem) << run.refusal;
  EXPECT_EQ(run.plan.schedule, Schedule::interleaved);
  EXPECT_EQ(chunk_count(run.plan.stages[0]), 3);
}

TEST(PublishedRuns, StagesThatDifferAreListed) {
  const MeasuredRun run = read({{"num_gpus", "4"},
                                {"gpus_per_node", ""},
                                {"tp", "1"},
                                {"pp", "3"},
                                {"dp", "mixed"},
                                {"mbs", "2"},
                                {"layer_split", "ops 132|176|111"},
                                {"recompute", "op-level: 130/132|176/176|48/111"},
                                {"plan_detail", "gpus/stage 1|2|1; tp set 1; dp set 1,2"}});
  ASSERT_TRUE(run.problem) << run.refusal;
  EXPECT_EQ(run.plan.stages[1].spans[0].data, 2);
  EXPECT_EQ(run.plan.micro_batches, 32);
  // 132 and 308 of 419 ops are 7.6 and 17.6 of 24 layers.
  EXPECT_EQ(units_of_stages(run.plan), (std::vector{9, 10, 7}));
}

TEST(PublishedRuns, RecomputedOpsAreThoseOfAttentionFirst) {
  // Of 12 x 13 ops a stage: 4 a layer are attention's; 13 a layer are all, no op is none.
  const auto kinds = [](const std::string& ops) {
    std::vector<Recompute> found;
    for (const Stage& stage : read({{"recompute", "op-level: " + ops}}).plan.stages)
      for (const Span& span : stage.spans) found.push_back(span.recompute);
    return found;
  };
  using enum Recompute;
  EXPECT_EQ(kinds("48/156|48/156"), (std::vector{none, selective, selective, none}));
  EXPECT_EQ(kinds("156/156|0/156"), (std::vector{none, full, none}));
  // 8.5 of 13 ops: half of the layers whole, half in attention.
  EXPECT_EQ(kinds("102/156|0/156"), (std::vector{none, full, selective, none}));
}

TEST(PublishedRuns, DegreesMustMultiplyOut) {
  EXPECT_EQ(read({{"tp", "3"}}).refusal, "tp 3 x pp 2 x cp 1 does not divide the 16 devices");
  EXPECT_EQ(read({{"tp", "mixed"}}).refusal, "tp or dp is mixed and the stages are not listed");
  EXPECT_EQ(read({{"tp", ""}, {"pp", ""}}).refusal, "tp and pp are not stated");
  const MeasuredRun run = read({{"dp", "8"}});
  EXPECT_TRUE(run.problem);
  EXPECT_EQ(run.assumptions[0], "dp 4, not 8: it must multiply out to 16 devices");
}

TEST(PublishedRuns, ValuesThatMakeNoSenseRefuseTheRow) {
  EXPECT_EQ(read({{"tp", "-2"}}).refusal, "tp is '-2', not a number above 0 and up to 1e+09");
  EXPECT_EQ(read({{"tp", "2.5"}}).refusal, "tp is '2.5', not a whole number");
  EXPECT_EQ(read({{"hidden", "1e30"}}).refusal,
            "hidden is '1e30', not a number above 0 and up to 1e+09");
  EXPECT_EQ(read({{"n_layers", "abc"}}).refusal,
            "n_layers is 'abc', not a number above 0 and up to 1e+09");
  EXPECT_EQ(read({{"n_layers", "nan"}}).refusal,
            "n_layers is not stated and the model is not known");
  EXPECT_EQ(read({{"num_gpus", "900000000"}}).refusal, "num_gpus is 900000000");
  EXPECT_EQ(read({{"gbs", "900000000"}}).refusal,
            "112500000 micro-batches in 2 stages are too many to simulate");
  EXPECT_FALSE(read({{"n_layers", "900000000"}}).refusal.empty());
  EXPECT_FALSE(read({{"vpp", "900000000"}}).refusal.empty());
  EXPECT_FALSE(read({{"gpu", "abacus"}}).refusal.empty());
  EXPECT_FALSE(read({{"seq_len", ""}, {"model", "unheard of"}}).refusal.empty());
  EXPECT_EQ(read({{"iter_time_s", ""}}).refusal, "neither a time nor a memory is stated");
  EXPECT_EQ(read({{"quality", "C"}, {"notes", "typo"}}).refusal, "graded C: typo");
}

TEST(PublishedRuns, AFailedRunHasNoTimeAndIsKept) {
  const MeasuredRun run = read({{"status", "oom"}, {"iter_time_s", "inf"}});
  ASSERT_TRUE(run.problem) << run.refusal;
  EXPECT_TRUE(run.failed);
  EXPECT_FALSE(run.step);
}

TEST(PublishedRuns, DevicesAreFoundByWhatTablesCallThem) {
  EXPECT_EQ(read({{"gpu", "A100-SXM4-40GB"}}).device, "A100-40GB");
  EXPECT_EQ(read({{"gpu", "A100 (Selene)"}}).device, "A100-80GB");
  EXPECT_EQ(read({{"gpu", "A100"}, {"gpu_mem_gb", "40"}}).device, "A100-40GB");
  EXPECT_EQ(read({{"gpu", "GH-96x16"}, {"gpu_class", "GH200-96GB"}}).device, "GH200");
  EXPECT_EQ(read({{"gpu", "Ampere, not named"}, {"gpu_class", "A100-class"}}).device, "A100-80GB");
  EXPECT_EQ(read({{"gpu", "H100-80GB-SXM 700W"}}).device, "H100");
}

TEST(PublishedRuns, CorrectionsApplyUnlessTakenLiterally) {
  const Cells row{{"source_id", "vtrain_single"}, {"gpu", "A100"}};
  EXPECT_EQ(read(row).device, "A100-40GB");
  EXPECT_EQ(read(row).plan.stages[0].spans[0].recompute, Recompute::none);
  EXPECT_EQ(read(row, true).device, "A100-80GB");
  EXPECT_EQ(read(row, true).plan.stages[0].spans.back().recompute, Recompute::full);
}

TEST(PublishedRuns, HuggingFaceStepsAreReadByTheirHeader) {
  const auto runs = read_published_runs(
      "steps.csv",
      "model,seq,vocab,mbs,precision,recompute,grad_accum,params,ms_median,peak_alloc_mib\n"
      "gpt2-124M,1024,50257,4,bf16,1,2,124439808,58.3,3072\n"
      "unknown-9T,1024,50257,4,amp,0,1,1,58.3,3072\n"
      "our gpt2,1024,50257,4,amp,0,1,354823168,58.3,3072\n");
  ASSERT_EQ(runs.size(), 3u);
  ASSERT_TRUE(runs[0].problem) << runs[0].refusal;
  EXPECT_EQ(runs[0].device, "H200");
  EXPECT_EQ(runs[0].problem->model.parameters(), 124'439'808);
  EXPECT_EQ(runs[0].problem->job.precision, Precision::pure_bf16);
  EXPECT_EQ(runs[0].problem->job.framework.name, "eager");
  EXPECT_EQ(runs[0].plan.micro_batches, 2);
  EXPECT_EQ(runs[0].step, Seconds(0.0583));
  EXPECT_EQ(runs[0].memory, Bytes(3 * 0x1p30));
  EXPECT_EQ(runs[1].refusal, "n_layers is not stated and the model is not known");
  // Known by its number of parameters: GPT-2 medium.
  ASSERT_TRUE(runs[2].problem) << runs[2].refusal;
  EXPECT_EQ(runs[2].problem->model.unit_count(), 26);
}

TEST(PublishedRuns, AnotherTableIsRefusedAsAWhole) {
  EXPECT_THROW(read_published_runs("x.csv", "a,b\n1,2\n"), InputError);
  EXPECT_THROW(read_published_runs("x.csv", ""), InputError);
}

TEST(PublishedRuns, TheShippedSetIsPredictedWhole) {
  const auto runs = shipped_runs();
  EXPECT_GE(runs.size(), 30u);
  for (const MeasuredRun& run : runs) EXPECT_TRUE(run.problem) << run.id << ": " << run.refusal;
}

TEST(PublishedRuns, MachinesThatAreNamedMakeAMixedCluster) {
  const MeasuredRun run = read({{"heterogeneous", "yes"},
                                {"gpu", "V100 (p3.8xlarge x3) + T4 (g4dn.12xlarge x1)"},
                                {"gpus_per_node", "4"}});
  ASSERT_TRUE(run.problem) << run.refusal;
  const Cluster& cluster = run.problem->cluster;
  EXPECT_EQ(cluster.device_count(), 16);
  EXPECT_EQ(cluster.type_of(DeviceId{0}).name, "V100-16GB");
  EXPECT_EQ(cluster.type_of(DeviceId{12}).name, "T4");
  EXPECT_EQ(read({{"heterogeneous", "yes"}}).refusal,
            "runs on several device types, and how many of 'A100-80GB' is not stated");
  EXPECT_NE(read({{"heterogeneous", "yes"}, {"gpu", "p3.8xlarge x2 + g4dn.12xlarge x1"}})
                .refusal.find("12 devices"),
            std::string::npos);
}

TEST(PublishedRuns, LinksThatWereOnlyModelledAreNotStated) {
  const auto intra = [](const std::string& text) {
    return read({{"interconnect", text}}).problem->cluster.nodes[0].intra.bandwidth.value;
  };
  EXPECT_DOUBLE_EQ(intra("10 Gb/s inter, 80 Gb/s intra"), 10e9);
  EXPECT_DOUBLE_EQ(intra("10 Gb/s inter, 80 Gb/s intra as modelled"), intra("10 Gb/s inter"));
}

constexpr const char* kTrials =
    "experiment,trial_index,tp,dp,pp,micro_batch,global_batch,units_per_stage,predicted_s,actual_s,"
    "status\n"
    "homogeneous,3,1,4,4,1,32,9-6-6-9,1.2841,1.2,ok\n"
    "het_cluster,4,2,2,4,1,32,9-6-6-9,1.3,1.5,ok\n"
    "het_model,5,1,4,4,1,64,15-14-14-13,1.0,1.09,ok\n"
    "het_model,6,1,16,1,4,64,56,1.0,inf,failed\n"
    "other,7,1,16,1,4,64,56,1.0,1.0,ok\n";

TEST(PublishedRuns, TrialsOfAmpAreReadWithWhatTheirExperimentRan) {
  const std::vector<MeasuredRun> runs = read_published_runs("trials.csv", kTrials);
  ASSERT_EQ(runs.size(), 5U);
  EXPECT_EQ(runs[0].source, "amp_homogeneous");
  EXPECT_EQ(runs[0].device, "T4");
  // 2 of the 9 pieces stand before the first layer, 4 of the last 9 after the last one.
  EXPECT_EQ(runs[0].plan.stages[0].spans[0].units.size(), 8);
  EXPECT_EQ(runs[0].plan.stages[3].spans.back().units.end, 26);
  ASSERT_TRUE(runs[1].problem) << runs[1].refusal;
  EXPECT_EQ(runs[1].problem->cluster.device_types.size(), 2U);
  ASSERT_TRUE(runs[2].problem) << runs[2].refusal;
  // 15 pieces are the latent layer and 12 blocks; 14 of the 26 that follow are 3 enlargements.
  EXPECT_EQ(runs[2].plan.stages[0].spans[0].units.size(), 13);
  EXPECT_EQ(runs[2].plan.stages[1].spans[0].units.size(), 3);
  EXPECT_EQ(runs[2].plan.stages[3].spans.back().units.end, 31);
  EXPECT_TRUE(runs[3].failed);
  EXPECT_EQ(runs[2].others_step, Seconds(1.0));
  EXPECT_NE(runs[4].refusal.find("experiment is 'other'"), std::string::npos);
}

TEST(PublishedRuns, WordsOfARowBecomeKnobsOfTheJob) {
  const auto job = [](const samples::Cells& cells) { return samples::read(cells).problem->job; };
  EXPECT_EQ(job({{"framework", "InternEvo"}, {"dp_sharding", "ZeRO-1 group=4"}}).zero_group, 4);
  // Kernels of 2023 are those of the first generation, later ones the program's own.
  const samples::Cells fsdp{
      {"framework", "PyTorch FSDP"}, {"tp", "1"},     {"pp", "1"}, {"dp", "16"},
      {"dp_sharding", "FSDP"},       {"date", "2023"}};
  EXPECT_EQ(job(fsdp).flash_kernel, FlashKernel::first);
  samples::Cells later = fsdp;
  later["date"] = "2025-02";
  EXPECT_FALSE(job(later).flash_kernel);
  later["notes"] = "all-bf16 weights";
  EXPECT_TRUE(job(later).pure_states);
  // Megatron-LM adds fp16 gradients up in fp16.
  EXPECT_EQ(job({{"precision", "fp16"}}).gradient_bytes, 2);
  EXPECT_EQ(job({{"precision", "bf16"}}).gradient_bytes, 0);
}

TEST(PublishedRuns, EverySecondLayerIsHalfOfThemRecomputed) {
  const MeasuredRun run =
      samples::read({{"recompute", "selective (every 2nd layer)"}, {"pp", "1"}, {"dp", "8"}});
  int full = 0;
  for (const Span& span : run.plan.stages[0].spans)
    if (span.recompute == Recompute::full) full += span.units.size();
  EXPECT_EQ(full, 13);  // of 26 units, of which 24 are layers
  EXPECT_EQ(samples::read({{"recompute", "per-op SAC"}}).plan.stages[0].spans.back().recompute,
            Recompute::selective);
}

TEST(PublishedRuns, ARowWithoutRecomputeDoesNotSayWhatItKeeps) {
  EXPECT_TRUE(samples::read({}).says_what_is_kept);
  EXPECT_FALSE(samples::read({{"recompute", ""}}).says_what_is_kept);
}

TEST(PublishedRuns, MemoryAloneNeedsASequenceOrABatch) {
  const MeasuredRun run =
      samples::read({{"iter_time_s", ""}, {"peak_mem_gb", "40"}, {"seq_len", ""}, {"gbs", ""}});
  EXPECT_EQ(run.refusal, "neither seq_len nor gbs is stated, on which its memory depends");
  EXPECT_EQ(samples::read({{"iter_time_s", ""}, {"peak_mem_gb", "40"}}).refusal, "");
}

}  // namespace
}  // namespace plait
