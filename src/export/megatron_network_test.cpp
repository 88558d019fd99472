// Which networks are written for Megatron-LM, and by which of its programs and kernels they are
// trained.
#include <gtest/gtest.h>

#include "export/exporter.h"
#include "io/model/megatron_launch.h"
#include "io/plan/megatron_plan.h"
#include "plan/check.h"
#include "plan/sample_frameworks.h"
#include "plan/sample_problems.h"
#include "plan/target.h"

namespace plait {
namespace {

const Exporter& megatron_exporter() { return *exporter_named("megatron"); }

std::string exported_script(const Problem& problem, const Plan& plan) {
  const ExportedRun run = megatron_exporter().run(problem, plan);
  return run.script.settings + run.script.command;
}

// As Megatron-LM's own T5 of 220 million parameters: learnt positions, biases, GELU.
TransformerConfig t5_network(int encoder, int decoder) {
  TransformerConfig c = samples::gpt(encoder, 768, 12, 512);
  c.decoder_layers = decoder;
  c.decoder_sequence = 128;
  c.causal = false;
  c.head_bias = true;
  c.vocabulary = 29184;
  return c;
}

TEST(MegatronExport, AnEncoderDecoderIsTrainedByItsOwnProgram) {
  const Job job{.global_batch = 16, .framework = samples::framework("megatron-lm")};
  const Cluster cluster = samples::cluster_of(samples::h100(), 1, 8);
  const Problem problem = samples::problem_of(t5_network(12, 12), cluster, job);
  Plan plan;
  plan.micro_batches = 4;
  plan.stages = stages_of({.tensor = 2, .data = 4, .chunks = {{.layers = 24}}}, problem.model);
  ASSERT_TRUE(check_plan(problem, plan).empty());
  EXPECT_EQ(why_not(target_of(megatron_exporter(), problem), problem, plan), std::nullopt);
  EXPECT_EQ(megatron_exporter().network(problem), "");
  const std::string script = exported_script(problem, plan);
  for (const char* part :
       {"pretrain_t5.py", "--encoder-num-layers 12", "--decoder-num-layers 12",
        "--encoder-seq-length 512", "--decoder-seq-length 128", "--vocab-extra-ids 100"})
    EXPECT_NE(script.find(part), script.npos) << part << "\n" << script;
  EXPECT_EQ(script.find("--mock-data"), script.npos);
  const auto launch = read_megatron_launch("run.sh", script);
  ASSERT_TRUE(launch);
  EXPECT_EQ(megatron_plan("run.sh", *launch, problem).plan, plan);
  plan.stages = stages_of({.data = 4, .stages = 2, .chunks = {{.layers = 12}, {.layers = 12}}},
                          problem.model);
  EXPECT_EQ(why_not(target_of(megatron_exporter(), problem), problem, plan),
            "Megatron-LM's T5 has no pipeline, the plan has 2 stages");
  EXPECT_EQ(megatron_exporter().network(samples::problem_of(t5_network(12, 6), cluster, job)),
            "Megatron-LM's T5 has equally many layers in encoder and decoder, the network has 12 "
            "and 6");
}

// Transformer Engine: flash attention has no bias, and keys as wide as values.
TEST(MegatronExport, AttentionHasAKernelThatCanDoIt) {
  const Job job{.global_batch = 16, .framework = samples::framework("megatron-lm")};
  const Cluster cluster = samples::cluster_of(samples::h100(), 1, 8);
  const auto backend = [&](const TransformerConfig& config, AttentionKernel attention) {
    Job own = job;
    own.attention = attention;
    const Problem problem = samples::problem_of(config, cluster, own);
    Plan plan;
    plan.micro_batches = 2;
    const int layers = config.layers + config.decoder_layers;
    plan.stages = stages_of({.data = 8, .chunks = {{.layers = layers}}}, problem.model);
    const std::string script = exported_script(problem, plan);
    const std::size_t at = script.find("--attention-backend ");
    return script.substr(at + 20, script.find('\n', at) - at - 20);
  };
  TransformerConfig config = samples::llama(4, 1024, 2816, 16, 16);
  EXPECT_EQ(backend(config, AttentionKernel::flash), "flash");
  EXPECT_EQ(backend(config, AttentionKernel::plain), "unfused");
  config.mla = {.q_rank = 384, .kv_rank = 128, .nope_dim = 64, .rope_dim = 32, .value_dim = 64};
  config.kv_heads = 0;
  EXPECT_EQ(backend(config, AttentionKernel::flash), "fused");
  TransformerConfig relative = t5_network(12, 12);
  relative.positions = Positions::relative;
  relative.relative_buckets = 16;
  relative.attention_scale = 0.125;
  EXPECT_EQ(backend(relative, AttentionKernel::flash), "fused");
  Problem single = samples::problem_of(samples::llama(4, 1024, 2816, 16, 16), cluster, job);
  single.job.precision = Precision::fp32;
  EXPECT_NE(megatron_exporter().network(single), "");
  single.job.attention = AttentionKernel::plain;
  EXPECT_EQ(megatron_exporter().network(single), "");
}

// megatron/core/transformer/transformer_config.py: "Please use --moe-router-pre-softmax when topk
// is 1".
TEST(MegatronExport, OneExpertOfATokenIsWeighedByTheSoftmaxOverAll) {
  const Job job{.global_batch = 16, .framework = samples::framework("megatron-lm")};
  TransformerConfig config = samples::llama(4, 1024, 2816, 16, 16);
  config.moe = {.experts = 8, .top_k = 1, .ffn = 512};
  const Problem problem =
      samples::problem_of(config, samples::cluster_of(samples::h100(), 1, 8), job);
  Plan plan;
  plan.micro_batches = 2;
  plan.stages = stages_of({.data = 8, .chunks = {{.layers = 4}}}, problem.model);
  EXPECT_EQ(megatron_exporter().network(problem), "");
  EXPECT_NE(exported_script(problem, plan).find("--moe-router-pre-softmax"), std::string::npos);
  EXPECT_EQ(megatron_exporter().run(problem, plan).losses.size(), 1u);
}

TEST(MegatronExport, AWindowHasItsFlagsAndNoContextParallelism) {
  const Job job{.global_batch = 16, .framework = samples::framework("megatron-lm")};
  TransformerConfig config = samples::llama(4, 1024, 2816, 16, 16);
  config.sequence = 1024;
  config.window = {256, {3}};
  Problem problem = samples::problem_of(config, samples::cluster_of(samples::h100(), 1, 8), job);
  Plan plan;
  plan.micro_batches = 2;
  plan.stages = stages_of({.data = 8, .chunks = {{.layers = 4}}}, problem.model);
  EXPECT_EQ(megatron_exporter().network(problem), "");
  const std::string script = exported_script(problem, plan);
  EXPECT_NE(script.find("--window-size '255,0'"), std::string::npos) << script;
  EXPECT_NE(script.find("--window-attn-skip-freq '([1]*3+[0]*1)'"), std::string::npos) << script;
  EXPECT_FALSE(target_of(megatron_exporter(), problem).context);
  config.window.size = 1024;  // all that there is
  problem = samples::problem_of(config, samples::cluster_of(samples::h100(), 1, 8), job);
  EXPECT_EQ(exported_script(problem, plan).find("--window"), std::string::npos);
  EXPECT_TRUE(target_of(megatron_exporter(), problem).context);
}

// Scores of T5 are not scaled, those of Megatron-LM always are.
TEST(MegatronExport, RelativePositionsHaveTheirFlags) {
  const Job job{.global_batch = 16, .framework = samples::framework("megatron-lm")};
  TransformerConfig config = t5_network(12, 12);
  config.positions = Positions::relative;
  config.relative_buckets = 16;
  const Cluster cluster = samples::cluster_of(samples::h100(), 1, 8);
  EXPECT_EQ(megatron_exporter().network(samples::problem_of(config, cluster, job)),
            "Megatron-LM has no flag for this network's scale of attention scores");
  config.attention_scale = 0.125;  // 1 / sqrt(768 / 12)
  EXPECT_EQ(megatron_exporter().network(samples::problem_of(config, cluster, job)), "");
}

}  // namespace
}  // namespace plait
