#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <regex>
#include <tuple>

#include "export/exporter.h"
#include "io/plan/megatron_plan.h"
#include "plan/check.h"
#include "plan/describe.h"
#include "plan/sample_frameworks.h"
#include "plan/sample_problems.h"
#include "plan/target.h"

namespace plait {
namespace {

const Exporter& torchtitan() { return *exporter_named("torchtitan"); }

std::string module_of(const ExportedRun& run) {
  for (const ExportedFile& file : run.files)
    if (file.name == "plait_plan.py") return file.text;
  return "";
}

// "tensor_parallel_degree=2," -> "2", quotes left out.
std::string word(const std::string& text, const std::string& key) {
  std::smatch match;
  const std::regex pattern("\\b" + key + " ?= ?\"?([^\",\\s)]+)");
  return std::regex_search(text, match, pattern) ? match[1].str() : "";
}

int number(const std::string& text, const std::string& key) { return std::stoi(word(text, key)); }

// Layers of every list of modules.
std::vector<LayoutStage> parts_of(const std::string& text) {
  std::vector<LayoutStage> parts;
  const std::regex line("\n        \\[([^\\]]*)\\]");
  for (std::sregex_iterator at(text.begin(), text.end(), line), end; at != end; ++at) {
    const std::string names = (*at)[1];
    LayoutStage part;
    for (std::size_t i = 0; (i = names.find("layers.", i)) != names.npos; ++i) ++part.layers;
    part.embedding = names.find("tok_embeddings") != names.npos;
    part.loss = names.find("lm_head") != names.npos;
    parts.push_back(part);
  }
  return parts;
}

Schedule schedule_of(const std::string& name) {
  if (name == "GPipe") return Schedule::gpipe;
  return name == "Interleaved1F1B" ? Schedule::interleaved : Schedule::one_f_one_b;
}

// The plan that the module describes.
Plan read_module(const std::string& text, const Problem& problem) {
  LaunchedLayout layout;
  layout.tensor = number(text, "tensor_parallel_degree");
  layout.context = number(text, "context_parallel_degree");
  layout.stages = number(text, "pipeline_parallel_degree");
  const int shard = number(text, "data_parallel_shard_degree");
  layout.data = number(text, "data_parallel_replicate_degree") * shard;
  layout.chunks = parts_of(text);
  const int layers = number(text, "n_layers");
  if (layout.chunks.empty()) layout.chunks = {{.layers = layers, .embedding = true, .loss = true}};
  const std::string recompute = word(text, "RECOMPUTE");
  layout.recompute = recompute == "full"        ? Recompute::full
                     : recompute == "selective" ? Recompute::selective
                                                : Recompute::none;
  Plan plan;
  plan.context = layout.context;
  plan.expert = number(text, "expert_parallel_degree");
  plan.sequence_parallel = word(text, "enable_sequence_parallel") == "True";
  const bool always = word(text, "fsdp_reshard_after_forward") == "always";
  if (shard * plan.context > 1) plan.zero = always ? ZeroStage::parameters : ZeroStage::gradients;
  const int local = number(text, "local_batch_size");
  plan.micro_batches = layout.stages > 1 ? local / number(text, "pipeline_parallel_microbatch_size")
                                         : number(text, "global_batch_size") / local / layout.data;
  if (layout.stages > 1) plan.schedule = schedule_of(word(text, "pipeline_parallel_schedule"));
  plan.stages = stages_of(layout, problem.model);
  return plan;
}

std::pair<Problem, Plan> random_torchtitan_run(std::mt19937& random) {
  const auto below = [&](int limit) {
    return std::uniform_int_distribution<int>(0, limit - 1)(random);
  };
  LaunchedLayout layout;
  layout.tensor = 1 << below(3);
  layout.context = below(3) == 0 ? 2 : 1;
  layout.data = 1 << below(3);
  layout.stages = 1 << below(3);
  const int chunks = layout.stages > 1 && below(3) == 0 ? 2 : 1;
  int layers = 0;
  for (int k = 0; k < layout.stages * chunks; ++k) {
    layout.chunks.push_back({.layers = 1 + below(4)});
    layers += layout.chunks.back().layers;
  }
  layout.chunks.front().embedding = layout.chunks.back().loss = true;
  layout.recompute = static_cast<Recompute>(below(3));
  Job job;
  job.framework = samples::framework(below(2) == 0 ? "fsdp2" : "fsdp-compile");
  job.precision =
      std::array{Precision::bf16, Precision::fp32, Precision::tf32, Precision::fp8_row}[below(4)];
  Plan plan;
  plan.context = layout.context;
  plan.micro_batches = layout.stages * (1 + below(4));
  plan.sequence_parallel = layout.tensor > 1;
  job.zero_group = below(3) == 0 ? 2 * layout.context : 0;
  if (layout.data * layout.context > 1)
    plan.zero = std::array{ZeroStage::off, ZeroStage::gradients, ZeroStage::parameters}[below(3)];
  plan.schedule = chunks > 1                           ? Schedule::interleaved
                  : layout.stages > 1 && below(3) == 0 ? Schedule::gpipe
                                                       : Schedule::one_f_one_b;
  job.global_batch = plan.micro_batches * layout.data * (1 + below(3));
  const int devices = layout.tensor * layout.context * layout.data * layout.stages;
  const int per_node = std::min(8, devices);
  Problem problem =
      samples::problem_of(samples::llama(layers, 1024, 2816, 16, 4),
                          samples::cluster_of(samples::h100(), devices / per_node, per_node), job);
  plan.stages = stages_of(layout, problem.model);
  return {std::move(problem), std::move(plan)};
}

// torch/distributed/pipelining/schedules.py, Schedule1F1B.
TEST(TorchtitanExport, OneFOneBHasAMicroBatchForEachStage) {
  std::mt19937 random(22);
  auto [problem, plan] = random_torchtitan_run(random);
  while (plan.schedule != Schedule::one_f_one_b || plan.stage_count() < 2)
    std::tie(problem, plan) = random_torchtitan_run(random);
  const auto name = [&] {
    return word(module_of(torchtitan().run(problem, plan)), "pipeline_parallel_schedule");
  };
  const std::size_t usual = torchtitan().run(problem, plan).losses.size();
  EXPECT_EQ(name(), "1F1B");
  plan.micro_batches = plan.stage_count() - 1;
  EXPECT_EQ(name(), "GPipe");
  EXPECT_EQ(torchtitan().run(problem, plan).losses.size(), usual + 1);
}

TEST(TorchtitanExport, ReadBackIsThePlanAndTheSizesOfTheNetwork) {
  std::mt19937 random(21);
  int written = 0;
  for (int i = 0; i < 300; ++i) {
    const auto [problem, plan] = random_torchtitan_run(random);
    ASSERT_TRUE(check_plan(problem, plan).empty()) << check_plan(problem, plan).front().what;
    if (why_not(target_of(torchtitan(), problem), problem, plan)) continue;
    ASSERT_EQ(torchtitan().network(problem), "");
    const ExportedRun run = torchtitan().run(problem, plan);
    ASSERT_EQ(run.refusal, "") << describe(plan);
    const std::string text = module_of(run);
    EXPECT_EQ(read_module(text, problem), plan) << describe(read_module(text, problem)) << "\n"
                                                << describe(plan);
    EXPECT_EQ(std::max(1, number(text, "data_parallel_shard_degree") * plan.context),
              plan.zero == ZeroStage::off ? 1 : sharding_group(problem, plan));
    const auto& config = std::get<TransformerConfig>(problem.model.architecture);
    EXPECT_EQ(number(text, "dim"), config.hidden);
    EXPECT_EQ(number(text, "n_heads"), config.heads);
    EXPECT_EQ(number(text, "n_kv_heads"), config.kv_heads);
    EXPECT_EQ(number(text, "hidden_dim"), config.ffn);
    EXPECT_EQ(number(text, "vocab_size"), config.vocabulary);
    EXPECT_EQ(number(text, "seq_len"), config.sequence);
    EXPECT_EQ(number(text, "global_batch_size"), problem.job.global_batch);
    const bool row = problem.job.precision == Precision::fp8_row;
    const bool half = row || problem.job.precision == Precision::bf16;
    EXPECT_EQ(word(text, "FLOAT8"), row ? "True" : "False");
    EXPECT_EQ(word(text, "mixed_precision_param"), half ? "bfloat16" : "float32");
    const bool compiled = problem.job.framework.name == "fsdp-compile";
    EXPECT_EQ(word(text, "COMPILE"), compiled ? "True" : "False");
    EXPECT_EQ(word(text, "ASYNC_TENSOR_PARALLEL"),
              compiled && plan.stages[0].spans[0].tensor > 1 ? "True" : "False");
    EXPECT_EQ(word(text, "TF32"), problem.job.precision == Precision::tf32 ? "True" : "False");
    ++written;
  }
  EXPECT_GT(written, 150);
}

}  // namespace
}  // namespace plait
