#include "cost/uniform.h"

#include <gtest/gtest.h>

#include <random>

#include "cost/sample_devices.h"
#include "plan/check.h"

namespace plait {
namespace {

template <typename Value>
Value any_of(std::mt19937_64& random, const std::vector<Value>& values) {
  return values[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random)];
}

Problem random_regular_problem(std::mt19937_64& random) {
  const int layers = any_of<int>(random, {4, 12, 24, 32});
  TransformerConfig config = samples::gpt(layers, 2048, 16, 1024);
  config.tied = any_of<int>(random, {0, 1}) == 1;
  Job job;
  job.global_batch = any_of<int>(random, {64, 256});
  job.framework =
      any_of<Framework>(random, {Framework::megatron, Framework::megatron_deepspeed,
                                 Framework::fsdp, Framework::eager, Framework::megatron_lm});
  job.attention = any_of<AttentionKernel>(random, {AttentionKernel::flash, AttentionKernel::plain});
  const int per_node = any_of<int>(random, {4, 8});
  return samples::problem_of(config, samples::cluster_of(samples::a100(), 4, per_node), job);
}

UniformPlan random_plan(std::mt19937_64& random) {
  UniformPlan plan;
  plan.tensor = any_of<int>(random, {1, 2, 4, 8});
  plan.data = any_of<int>(random, {1, 2, 4, 8, 16});
  plan.pipeline = any_of<int>(random, {1, 2, 4, 6, 8});
  plan.context = any_of<int>(random, {1, 1, 1, 2});
  plan.micro_batches = any_of<int>(random, {1, 2, 4, 8, 16, 32});
  plan.zero = any_of<ZeroStage>(
      random, {ZeroStage::off, ZeroStage::optimizer, ZeroStage::gradients, ZeroStage::parameters});
  plan.sequence_parallel = plan.tensor > 1 && any_of<int>(random, {0, 1}) == 1;
  plan.recompute =
      any_of<Recompute>(random, {Recompute::none, Recompute::selective, Recompute::full});
  plan.schedule = any_of<Schedule>(random, {Schedule::gpipe, Schedule::one_f_one_b});
  return plan;
}

TEST(Uniform, EqualsTheEngineOnRandomPlans) {
  std::mt19937_64 random(1);
  int compared = 0;
  for (int p = 0; p < 40; ++p) {
    const Problem problem = random_regular_problem(random);
    const CostEngine engine(problem);
    UniformCost uniform(engine);
    ASSERT_TRUE(uniform.regular());
    const int layers = problem.model.unit_count() - 2;
    for (int i = 0; i < 200; ++i) {
      const UniformPlan plan = random_plan(random);
      if (layers % plan.pipeline != 0) continue;
      const int devices = plan.tensor * plan.data * plan.context * plan.pipeline;
      if (devices > problem.cluster.device_count()) continue;
      const Plan whole = plan_of(problem, plan);
      if (!check_plan(problem, whole).empty()) continue;
      ++compared;
      const Estimate expected = engine.estimate(whole);
      const QuickEstimate quick = uniform.evaluate(plan);
      EXPECT_NEAR(quick.step / expected.step, 1, 1e-9)
          << "tp " << plan.tensor << " dp " << plan.data << " pp " << plan.pipeline << " cp "
          << plan.context << " m " << plan.micro_batches;
      EXPECT_NEAR(quick.peak_memory / expected.peak_memory(), 1, 1e-9);
      EXPECT_EQ(quick.fits, expected.fits);
    }
  }
  EXPECT_GT(compared, 1000);
}

TEST(Uniform, StagesThatStraddleNodesAreLeftToTheEngine) {
  Job job;
  job.global_batch = 12;
  const Problem problem = samples::problem_of(samples::gpt(4, 1024, 12, 1024),
                                              samples::cluster_of(samples::a100(), 3, 8), job);
  const CostEngine engine(problem);
  UniformCost uniform(engine);
  // Two stages of 12 devices on nodes of 8.
  const UniformPlan plan{.tensor = 1, .data = 12, .pipeline = 2, .micro_batches = 1};
  EXPECT_EQ(uniform.evaluate(plan).step, engine.estimate(plan_of(problem, plan)).step);
}

TEST(Uniform, ModelsWithUnlikeLayersAreNotRegular) {
  Job job;
  job.global_batch = 8;
  Problem problem = samples::problem_of(samples::gpt(4, 1024, 16, 1024),
                                        samples::cluster_of(samples::a100(), 1, 8), job);
  problem.model.kinds.push_back(problem.model.kinds[problem.model.units[1]]);
  problem.model.units[2] = static_cast<int>(problem.model.kinds.size()) - 1;
  const CostEngine engine(problem);
  EXPECT_FALSE(UniformCost(engine).regular());
}

}  // namespace
}  // namespace plait
