#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "cost/framework/framework.h"
#include "export/exporter.h"
#include "export/megatron_model.h"
#include "io/format/shell_flags.h"
#include "io/model/megatron_flags.h"
#include "io/model/megatron_script.h"
#include "io/plan/megatron_plan.h"
#include "plan/check.h"
#include "plan/describe.h"
#include "plan/sample_frameworks.h"
#include "plan/sample_problems.h"
#include "plan/target.h"

namespace plait {
namespace {

// Every flag that is written, with its number of values, as Megatron-LM 0.20's own parser has it; 9
// stands for "one or more".
const std::map<std::string, int> kFlags = {
    {"--tensor-model-parallel-size", 1},
    {"--pipeline-model-parallel-size", 1},
    {"--context-parallel-size", 1},
    {"--expert-model-parallel-size", 1},
    {"--sequence-parallel", 0},
    {"--pipeline-model-parallel-layout", 1},
    {"--num-virtual-stages-per-pipeline-rank", 1},
    {"--use-distributed-optimizer", 0},
    {"--num-distributed-optimizer-instances", 1},
    {"--tp-comm-overlap", 0},
    {"--overlap-grad-reduce", 0},
    {"--overlap-param-gather", 0},
    {"--use-precision-aware-optimizer", 0},
    {"--optimizer-cpu-offload", 0},
    {"--optimizer-offload-fraction", 1},
    {"--optimizer", 1},
    {"--sgd-momentum", 1},
    {"--recompute-granularity", 1},
    {"--recompute-method", 1},
    {"--recompute-num-layers", 1},
    {"--recompute-modules", 9},
    {"--micro-batch-size", 1},
    {"--global-batch-size", 1},
    {"--bf16", 0},
    {"--fp16", 0},
    {"--fp8-format", 1},
    {"--fp8-recipe", 1},
    {"--fp4-format", 1},
    {"--attention-backend", 1},
    {"--accumulate-allreduce-grads-in-fp32", 0},
    {"--grad-reduce-in-bf16", 0},
    {"--cross-entropy-loss-fusion", 0},
    {"--cross-entropy-fusion-impl", 1},
    {"--num-layers", 1},
    {"--encoder-num-layers", 1},
    {"--decoder-num-layers", 1},
    {"--encoder-seq-length", 1},
    {"--decoder-seq-length", 1},
    {"--relative-attention-num-buckets", 1},
    {"--relative-attention-max-distance", 1},
    {"--hidden-size", 1},
    {"--ffn-hidden-size", 1},
    {"--num-attention-heads", 1},
    {"--group-query-attention", 0},
    {"--num-query-groups", 1},
    {"--kv-channels", 1},
    {"--seq-length", 1},
    {"--max-position-embeddings", 1},
    {"--swiglu", 0},
    {"--no-bias-gelu-fusion", 0},
    {"--disable-bias-linear", 0},
    {"--add-qkv-bias", 0},
    {"--normalization", 1},
    {"--norm-epsilon", 1},
    {"--qk-layernorm", 0},
    {"--untie-embeddings-and-output-weights", 0},
    {"--hidden-dropout", 1},
    {"--attention-dropout", 1},
    {"--position-embedding-type", 1},
    {"--rotary-base", 1},
    {"--rotary-percent", 1},
    {"--rotary-interleaved", 0},
    {"--use-rope-scaling", 0},
    {"--rope-scaling-factor", 1},
    {"--rotary-seq-len-interpolation-factor", 1},
    {"--vocab-size", 1},
    {"--make-vocab-size-divisible-by", 1},
    {"--num-experts", 1},
    {"--moe-router-topk", 1},
    {"--moe-ffn-hidden-size", 1},
    {"--moe-layer-freq", 1},
    {"--window-size", 1},
    {"--window-attn-skip-freq", 1},
    {"--moe-shared-expert-intermediate-size", 1},
    {"--moe-shared-expert-gate", 0},
    {"--moe-router-pre-softmax", 0},
    {"--moe-router-topk-scaling-factor", 1},
    {"--moe-grouped-gemm", 0},
    {"--moe-token-dispatcher-type", 1},
    {"--multi-latent-attention", 0},
    {"--q-lora-rank", 1},
    {"--kv-lora-rank", 1},
    {"--qk-head-dim", 1},
    {"--qk-pos-emb-head-dim", 1},
    {"--v-head-dim", 1},
    {"--rope-type", 1},
    {"--bert-no-binary-head", 0},
    {"--tokenizer-type", 1},
    {"--tokenizer-model", 1},
    {"--vocab-file", 1},
    {"--vocab-extra-ids", 1},
    {"--mock-data", 0},
    {"--data-path", 9},
    {"--save", 1},
    {"--load", 1},
    {"--save-interval", 1},
    {"--train-iters", 1},
    {"--lr", 1},
    {"--log-interval", 1},
    {"--eval-iters", 1},
};

// Problems and plans that Megatron-LM runs, of every shape that its flags can say.
class RandomRuns {
 public:
  explicit RandomRuns(unsigned seed) : random_(seed) {}

  std::pair<Problem, Plan> next() {
    const bool experts = below(3) == 0;
    TransformerConfig config = network(experts);
    LaunchedLayout layout;
    layout.tensor = 1 << below(3);
    layout.context = below(3) == 0 ? 2 : 1;
    layout.data = 1 << below(3);
    layout.stages = 1 << below(3);
    const int chunks = layout.stages > 1 && below(3) == 0 ? 2 : 1;
    config.layers = place(layout, chunks);
    if (experts && config.layers > 1 && below(2) == 0) config.moe.first_dense = 1;
    Job job;
    job.framework = samples::framework(below(2) == 0 ? "megatron" : "megatron-lm");
    job.zero_group = below(3) == 0 ? 2 : 0;
    job.gradient_bytes = 2 * below(3);
    job.logit_bytes = 4 * below(2);
    job.precision = std::array{Precision::bf16, Precision::fp16,    Precision::fp32,
                               Precision::fp8,  Precision::fp8_row, Precision::fp4}[below(6)];
    job.optimizer = std::array{Optimizer::adam, Optimizer::sgd, Optimizer::momentum}[below(3)];
    Plan plan;
    plan.context = layout.context;
    plan.micro_batches = layout.stages * (1 + below(4));
    plan.expert = experts && below(2) == 0 ? std::min(2, layout.data * layout.context) : 1;
    plan.zero = below(2) == 0 ? ZeroStage::optimizer : ZeroStage::off;
    plan.sequence_parallel = layout.tensor > 1 && (experts || below(2) == 0);
    const bool offloads = plan.zero == ZeroStage::optimizer && job.optimizer == Optimizer::adam;
    plan.offload = offloads && below(2) == 0 ? 0.25 * (1 + below(4)) : 0;
    plan.schedule = chunks > 1 ? Schedule::interleaved : Schedule::one_f_one_b;
    job.global_batch = plan.micro_batches * layout.data * (1 + below(3));
    const int devices = layout.tensor * layout.context * layout.data * layout.stages;
    const int per_node = std::min(8, devices);
    const Cluster cluster = samples::cluster_of(samples::h100(), devices / per_node, per_node);
    Problem problem = samples::problem_of(config, cluster, job);
    plan.stages = stages_of(layout, problem.model);
    return {std::move(problem), std::move(plan)};
  }

 private:
  int below(int limit) { return std::uniform_int_distribution<int>(0, limit - 1)(random_); }

  TransformerConfig network(bool experts) {
    TransformerConfig c = below(2) == 0 ? samples::gpt(4, 1024, 16, 1024)
                                        : samples::llama(4, 1024, 2816, 16, below(2) == 0 ? 4 : 16);
    c.sequence = 1024 << below(2);
    if (c.positions == Positions::rotary && below(2) == 0) {
      c.rotary.base = 500'000;
      c.rotary.scaling = RotaryScaling::llama3;
      c.rotary.factor = 8;
    }
    if (c.gated && below(3) == 0) c.qk_norm = QkNorm::per_head, c.qk_norm_kind = c.norm;
    if (!c.gated && below(2) == 0) c.activation = Function::gelu;
    if (c.gated && below(4) == 0) {
      c.mla = {.q_rank = 384, .kv_rank = 128, .nope_dim = 64, .rope_dim = 32, .value_dim = 64};
      c.kv_heads = 0;
      c.qk_norm = QkNorm::none;
    }
    if (!experts) return c;
    c.moe = {.experts = 8, .top_k = 2, .ffn = 512};
    c.moe.bias = c.mlp_bias;
    if (below(2) == 0) c.moe.shared_ffn = 512, c.moe.normalised = false, c.moe.scale = 2.5;
    return c;
  }

  // Layers of every chunk, and what of them is recomputed; gives their sum.
  int place(LaunchedLayout& layout, int chunks) {
    const bool even = below(2) == 0;
    int layers = 0;
    for (int k = 0; k < layout.stages * chunks; ++k) {
      const bool middle = k > 0 && k + 1 < layout.stages * chunks;
      layout.chunks.push_back({.layers = even ? 3 : (middle ? 1 : 0) + below(4)});
      layers += layout.chunks.back().layers;
    }
    layout.chunks.front().embedding = layout.chunks.back().loss = true;
    if (layers == 0) layers = layout.chunks.back().layers = 1;
    layout.recompute = static_cast<Recompute>(below(3));
    return layers;
  }

  std::mt19937 random_;
};

const Exporter& megatron() { return *exporter_named("megatron"); }

// The script as bash would see it, without what only bash needs.
std::string script_of(const ExportedRun& run) { return run.script.settings + run.script.command; }

TEST(MegatronExport, ReadBackIsThePlanAndTheNetwork) {
  RandomRuns runs(7);
  int written = 0;
  for (int i = 0; i < 300; ++i) {
    const auto [problem, plan] = runs.next();
    ASSERT_TRUE(check_plan(problem, plan).empty()) << check_plan(problem, plan).front().what;
    if (why_not(target_of(megatron(), problem), problem, plan)) continue;
    const ExportedRun run = megatron().run(problem, plan);
    ASSERT_EQ(run.refusal, "") << describe(plan);
    const std::string script = script_of(run);
    const auto config = read_megatron_flags("run.sh", script, std::nullopt).config;
    const auto& own = std::get<TransformerConfig>(problem.model.architecture);
    EXPECT_EQ(difference(in_full(own, 128), in_full(config, 128)), "");
    const std::string flags =
        read_megatron_script("run.sh", "HERE=. NPROC=8 NODE_RANK=0\n" + script).text;
    const auto launch = read_megatron_launch("run.sh", flags);
    ASSERT_TRUE(launch);
    EXPECT_EQ(launch->precision.value_or(Precision::fp32), problem.job.precision);
    EXPECT_EQ(launch->optimizer, problem.job.optimizer);
    EXPECT_EQ(launch->attention, problem.job.attention);
    EXPECT_EQ(launch->logit_bytes, problem.job.logit_bytes);
    Job same = problem.job;
    same.gradient_bytes = launch->gradient_bytes;
    if (same.precision != Precision::fp32) {
      EXPECT_EQ(state_bytes(same, false).gradient, state_bytes(problem.job, false).gradient)
          << script;
    }
    const ConfiguredPlan read = megatron_plan("run.sh", *launch, problem);
    EXPECT_EQ(read.plan, plan) << describe(read.plan) << "\n" << describe(plan);
    EXPECT_EQ(read.global_batch, problem.job.global_batch);
    Problem again = problem;
    again.job.zero_group = read.zero_group;
    EXPECT_EQ(sharding_group(again, plan), sharding_group(problem, plan)) << describe(plan);
    const Span& span = plan.stages.front().spans.front();
    const bool overlaps = problem.job.framework.traits.data_exposed < 1;
    EXPECT_EQ(launch->overlaps_gradients, overlaps && span.data * plan.context > 1);
    EXPECT_EQ(launch->overlaps_tensors, overlaps && span.tensor > 1 && plan.sequence_parallel);
    ++written;
  }
  EXPECT_GT(written, 100);
}

TEST(MegatronExport, WritesOnlyFlagsThatMegatronHas) {
  RandomRuns runs(8);
  std::map<std::string, int> seen;
  for (int i = 0; i < 300; ++i) {
    const auto [problem, plan] = runs.next();
    if (why_not(target_of(megatron(), problem), problem, plan)) continue;
    const MegatronModel model = megatron_model(problem);
    for (const FlagWords& words : model.flags) {
      ASSERT_TRUE(kFlags.contains(words.flag)) << words.flag;
      EXPECT_EQ(kFlags.at(words.flag), static_cast<int>(words.values.size())) << words.flag;
    }
    const std::string script = script_of(megatron().run(problem, plan));
    std::string word;
    for (const char c : script + " ") {
      const bool part = c == '-' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
      if (part) {
        word += c;
        continue;
      }
      if (word.starts_with("--") && word.size() > 2) ++seen[word];
      word.clear();
    }
  }
  for (const char* torchrun :
       {"--nnodes", "--nproc-per-node", "--node-rank", "--master-addr", "--master-port"})
    EXPECT_EQ(seen.erase(torchrun), 1u);
  for (const auto& [flag, count] : seen) EXPECT_TRUE(kFlags.contains(flag)) << flag;
}

Problem llama_on_eight() {
  Job job{.global_batch = 16, .framework = samples::framework("megatron-lm")};
  return samples::problem_of(samples::llama(24, 1024, 2816, 16, 4),
                             samples::cluster_of(samples::h100(), 1, 8), job);
}

Plan plan_of(const Problem& problem, std::vector<int> layers, int tensor) {
  LaunchedLayout layout{.tensor = tensor, .stages = static_cast<int>(layers.size())};
  layout.data = problem.cluster.device_count() / tensor / layout.stages;
  for (const int count : layers) layout.chunks.push_back({.layers = count});
  Plan plan;
  plan.micro_batches = 4;
  plan.stages = stages_of(layout, problem.model);
  return plan;
}

TEST(MegatronExport, UnevenStagesAreALayout) {
  const Problem problem = llama_on_eight();
  const std::string script = script_of(megatron().run(problem, plan_of(problem, {5, 6, 7, 6}, 1)));
  EXPECT_NE(script.find("--pipeline-model-parallel-layout 'Et*5|t*6|t*7|t*6L'"), std::string::npos)
      << script;
  EXPECT_EQ(script.find("CUDA_DEVICE_MAX_CONNECTIONS"), std::string::npos);
  const std::string even = script_of(megatron().run(problem, plan_of(problem, {6, 6, 6, 6}, 2)));
  EXPECT_EQ(even.find("layout"), std::string::npos);
  EXPECT_NE(even.find("export CUDA_DEVICE_MAX_CONNECTIONS=1"), std::string::npos);
}

// megatron/core/optimizer/distrib_optimizer.py asserts it, and optimizer_config.py has no other one
// in host memory.
TEST(MegatronExport, OnlyAdamIsCutAndInHostMemory) {
  Problem problem = llama_on_eight();
  Plan plan = plan_of(problem, {24}, 1);
  plan.zero = ZeroStage::optimizer;
  plan.offload = 1;
  EXPECT_EQ(why_not(target_of(megatron(), problem), problem, plan), std::nullopt);
  problem.job.optimizer = Optimizer::momentum;
  EXPECT_EQ(why_not(target_of(megatron(), problem), problem, plan),
            "Megatron-LM without Adam runs ZeRO 0, the plan has 1");
  plan.zero = ZeroStage::off;
  EXPECT_EQ(why_not(target_of(megatron(), problem), problem, plan),
            "Megatron-LM without Adam keeps no optimizer states in host memory");
}

TEST(MegatronExport, AFieldWithoutAFlagIsNamed) {
  Problem problem = llama_on_eight();
  auto& config = std::get<TransformerConfig>(problem.model.architecture);
  config.score_cap = 50;
  EXPECT_EQ(megatron_model(problem).refusal,
            "Megatron-LM has no flag for this network's cap on attention scores");
  config.score_cap = 0;
  config.activation = Function::relu;
  EXPECT_EQ(megatron_model(problem).refusal,
            "Megatron-LM has no flag for this network's gated activation");
  problem.model.architecture = NotRecorded{};
  EXPECT_TRUE(megatron_model(problem).refusal.starts_with("the plan file does not say"));
}

}  // namespace
}  // namespace plait
