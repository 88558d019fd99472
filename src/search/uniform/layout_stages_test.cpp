#include "search/uniform/layout_stages.h"

#include <gtest/gtest.h>

#include "plan/sample_problems.h"

namespace plait {
namespace {

// Two nodes of two A100 and two that are slower each, in stages of two devices.
TEST(LayoutStages, TellApartWhichTypesOfANodeAStageHas) {
  Job job;
  job.global_batch = 8;
  Problem problem = samples::problem_of(samples::gpt(6, 1024, 16, 1024),
                                        samples::cluster_of(samples::a100(), 2, 4), job);
  problem.cluster.device_types.push_back(samples::a100());
  problem.cluster.device_types.back().name = "slow";
  problem.cluster.device_types.back().efficiency.matmul /= 4;
  for (const int d : {2, 3, 6, 7}) problem.cluster.devices[d].type = 1;
  SearchContext context{problem, {.keep = 1}, {}, {}, {}};
  context.options.target = *target_named("megatron");
  const CostEngine engine(problem);
  const Space space(problem, {}, context.options.target);
  context.engine = &engine;
  context.space = &space;
  const std::vector<NodeKind> kinds = node_kinds(problem, context.options.target);
  const std::vector<NodeMix> mixes = node_mixes(kinds);
  const UniformLayouts layouts(space, engine, kinds, 1);
  const UniformGround ground{context, engine, kinds, mixes, layouts, {}, [] { return false; }};
  ASSERT_EQ(kinds.size(), 1u);
  UniformLayout layout{.data = 2, .stages = 4};
  layout.settings.micro_batches = 4;
  LayoutStages stages(ground, layout, space);
  ASSERT_TRUE(stages.place({0, 0}));
  EXPECT_NE(stages.signature(0), stages.signature(1));
  EXPECT_EQ(stages.signature(0), stages.signature(2));
  EXPECT_LT(stages.times_alone()[0], stages.times_alone()[1]);
}

}  // namespace
}  // namespace plait
