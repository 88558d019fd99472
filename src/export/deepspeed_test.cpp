#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "export/exporter.h"
#include "io/plan/deepspeed_config.h"
#include "plan/check.h"
#include "plan/describe.h"
#include "plan/sample_frameworks.h"
#include "plan/sample_problems.h"
#include "plan/target.h"

namespace plait {
namespace {

const Exporter& deepspeed() { return *exporter_named("deepspeed"); }

std::string ds_config_of(const ExportedRun& run) {
  for (const ExportedFile& file : run.files)
    if (file.name == "ds_config.json") return file.text;
  return "";
}

// A plan of every shape that ds_config.json can say: where layers do not come out even, the first
// stages have one more.
std::pair<Problem, Plan> random_deepspeed_run(std::mt19937& random) {
  const auto below = [&](int limit) {
    return std::uniform_int_distribution<int>(0, limit - 1)(random);
  };
  LaunchedLayout layout;
  layout.stages = 1 << below(3);
  layout.data = 1 << below(4);
  const int layers = layout.stages + below(12);
  for (int s = 0; s < layout.stages; ++s)
    layout.chunks.push_back(
        {.layers = layers / layout.stages + (s < layers % layout.stages ? 1 : 0)});
  layout.chunks.front().embedding = layout.chunks.back().loss = true;
  layout.recompute = below(2) == 0 ? Recompute::full : Recompute::none;
  Job job;
  job.framework = samples::framework("deepspeed");
  job.precision = std::array{Precision::bf16, Precision::fp16, Precision::fp32}[below(3)];
  job.reduce_bytes = std::array{0, 2, 4}[below(3)];
  job.optimizer = std::array{Optimizer::adam, Optimizer::sgd, Optimizer::momentum}[below(3)];
  Plan plan;
  plan.micro_batches = layout.stages * (1 + below(4));
  plan.zero = static_cast<ZeroStage>(below(layout.stages > 1 ? 2 : 4));
  if (plan.zero != ZeroStage::off && below(2) == 0) plan.offload = 1;
  if (plan.zero == ZeroStage::parameters && below(2) == 0) plan.offload = 0.25 * (1 + below(3));
  job.global_batch = plan.micro_batches * layout.data * (1 + below(3));
  const int devices = layout.data * layout.stages;
  const int per_node = std::min(8, devices);
  Problem problem =
      samples::problem_of(samples::gpt(layers, 1024, 16, 1024),
                          samples::cluster_of(samples::h100(), devices / per_node, per_node), job);
  plan.stages = stages_of(layout, problem.model);
  return {std::move(problem), std::move(plan)};
}

TEST(DeepspeedExport, ReadBackIsThePlanAndTheJob) {
  std::mt19937 random(11);
  int written = 0;
  for (int i = 0; i < 300; ++i) {
    const auto [problem, plan] = random_deepspeed_run(random);
    ASSERT_TRUE(check_plan(problem, plan).empty()) << check_plan(problem, plan).front().what;
    if (why_not(target_of(deepspeed(), problem), problem, plan)) continue;
    const ExportedRun run = deepspeed().run(problem, plan);
    ASSERT_EQ(run.refusal, "") << describe(plan);
    const DeepspeedConfig config = read_deepspeed_config("ds_config.json", ds_config_of(run));
    EXPECT_EQ(config.precision, problem.job.precision);
    EXPECT_EQ(config.optimizer, problem.job.optimizer);
    EXPECT_EQ(config.reduce_bytes, problem.job.reduce_bytes);
    EXPECT_TRUE(config.warnings.empty());
    const ConfiguredPlan read = deepspeed_plan("ds_config.json", config, problem);
    EXPECT_EQ(read.plan, plan) << describe(read.plan) << "\n" << describe(plan);
    EXPECT_EQ(read.global_batch, problem.job.global_batch);
    ++written;
  }
  EXPECT_GT(written, 250);
}

// deepspeed/runtime/engine.py refuses to cut states of an optimizer that it has not tested, unless
// the file allows it; SGD is one of them.
TEST(DeepspeedExport, StatesThatAreNotAdamsAreCutOnlyWhereTheFileAllowsIt) {
  std::mt19937 random(12);
  for (int i = 0; i < 100; ++i) {
    const auto [problem, plan] = random_deepspeed_run(random);
    const std::string text = ds_config_of(deepspeed().run(problem, plan));
    const bool allows = text.find("\"zero_allow_untested_optimizer\": true") != text.npos;
    EXPECT_EQ(allows, plan.zero != ZeroStage::off && problem.job.optimizer != Optimizer::adam)
        << text;
  }
}

// DeepSpeed's own default is true under ZeRO 3 and false under 1 and 2 (zero/config.py); its
// pipeline and ZeRO 0 have no overlap.
TEST(DeepspeedExport, GradientsAreSummedBesideComputeWhereThePredictionHasIt) {
  std::mt19937 random(14);
  int beside = 0;
  for (int i = 0; i < 200; ++i) {
    auto [problem, plan] = random_deepspeed_run(random);
    if (i % 2 == 0) problem.job.framework = samples::framework("megatron");
    problem.job.overlap = i % 3 != 0;
    const bool can = plan.zero != ZeroStage::off && plan.stage_count() == 1;
    const bool wants = overlaps_gradients(problem, plan);
    const ExportedRun run = deepspeed().run(problem, plan);
    const std::string text = ds_config_of(run);
    const bool lost = std::ranges::any_of(run.losses, [](const std::string& loss) {
      return loss.starts_with("that gradients are summed beside the backward pass");
    });
    EXPECT_EQ(text.find("\"overlap_comm\": true") != text.npos, can && wants) << text;
    EXPECT_EQ(text.find("\"overlap_comm\": false") != text.npos, can && !problem.job.overlap);
    EXPECT_EQ(lost, wants && !can);
    beside += can && wants ? 1 : 0;
  }
  EXPECT_GT(beside, 10);
}

TEST(DeepspeedExport, APartOfTheStatesIsInHostMemoryUnderZero3Only) {
  std::mt19937 random(13);
  auto [problem, plan] = random_deepspeed_run(random);
  plan.zero = ZeroStage::optimizer;
  plan.offload = 0.5;
  EXPECT_EQ(why_not(target_of(deepspeed(), problem), problem, plan),
            "DeepSpeed keeps a part of the optimizer states in host memory from ZeRO 3 on, the "
            "plan has offload 0.5 and ZeRO 1");
  plan.zero = ZeroStage::off;
  plan.offload = 1;
  EXPECT_EQ(why_not(target_of(deepspeed(), problem), problem, plan),
            "DeepSpeed keeps optimizer states in host memory from ZeRO 1 on, the plan has 0");
}

}  // namespace
}  // namespace plait
