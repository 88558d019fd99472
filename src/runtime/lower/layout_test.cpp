#include "runtime/lower/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "runtime/lower/runnable_plans.h"

namespace plait::runtime {
namespace {

SpanPlace place(std::vector<int> ranks, int tensor, std::vector<Interval> samples) {
  SpanPlace span;
  span.ranks = std::move(ranks);
  span.tensor = tensor;
  span.data = static_cast<int>(samples.size());
  span.samples = std::move(samples);
  return span;
}

TEST(Layout, SamplesGoFromWhoHasThemToWhoNeedsThem) {
  // Replicas of 3 and 1 samples hand on to replicas of 2 and 2.
  const SpanPlace a = place({0, 1}, 1, {{0, 3}, {3, 4}});
  const SpanPlace b = place({2, 3}, 1, {{0, 2}, {2, 4}});
  const std::vector<LiveTensor> x{{.name = "x", .shape = {5, 7}}};
  const Interval all{0, 5};
  const std::vector<Transfer> expected{{0, 2, 0, {{0, 2}, 0, all}, {{0, 2}, 0, all}},
                                       {0, 3, 0, {{2, 3}, 0, all}, {{0, 1}, 0, all}},
                                       {1, 3, 0, {{0, 1}, 0, all}, {{1, 2}, 0, all}}};
  EXPECT_EQ(transfers(a, b, x, false), expected);
}

TEST(Layout, FeaturesThatAreCutInTwoAreCutInFour) {
  const SpanPlace a = place({0, 1}, 2, {{0, 1}});
  const SpanPlace b = place({2, 3, 4, 5}, 4, {{0, 1}});
  // Gate and up of 4 features each: device 1 of 2 has {2..4} and {6..8}, device 3 of 4 {3} and {7}.
  const std::vector<LiveTensor> x{{.name = "x",
                                   .shape = {5, 8},
                                   .cut = LiveTensor::Cut::features,
                                   .dim = 1,
                                   .parts = {{4, 4}, {4, 4}}}};
  const std::vector<Transfer> found = transfers(a, b, x, false);
  ASSERT_EQ(found.size(), 8u);
  EXPECT_EQ(found[6], (Transfer{1, 5, 0, {{0, 1}, 1, {1, 2}}, {{0, 1}, 1, {0, 1}}}));
  EXPECT_EQ(found[7], (Transfer{1, 5, 0, {{0, 1}, 1, {3, 4}}, {{0, 1}, 1, {1, 2}}}));
}

TEST(Layout, PositionsAreCutOnlyWithSequenceParallelism) {
  const LiveTensor x{.name = "x", .shape = {8, 3}};
  EXPECT_EQ(local_shape(x, 2, 1, true), (std::vector<std::int64_t>{4, 3}));
  EXPECT_EQ(local_shape(x, 2, 1, false), (std::vector<std::int64_t>{8, 3}));
}

TEST(Layout, EveryValueOfEveryParameterIsInOneGroup) {
  samples::RunnablePlans plans(7);
  for (const Model& model : samples::tiny_models()) {
    const Problem problem = samples::tiny_problem(model, Optimizer::adam);
    const ExecProgram program = lower(model).program;
    for (int i = 0; i < 10; ++i) {
      const Layout layout = make_layout(problem, plans.next(problem, 8), program);
      const ParameterLayout parameters = parameter_layout(layout, program, 0);
      double values = 0;
      for (const ParameterGroup& group : parameters.groups) {
        EXPECT_TRUE(std::is_sorted(group.ranks.begin(), group.ranks.end()));
        for (const SharedRange& range : group.ranges) values += static_cast<double>(range.count);
      }
      EXPECT_EQ(values, model.parameters()) << model.name;
    }
  }
}

TEST(Layout, TiedTablesAreHeldByBothEnds) {
  const Problem problem =
      samples::tiny_problem(build_transformer(samples::tiny_gpt()), Optimizer::adam);
  Plan plan;
  plan.micro_batches = 4;
  plan.stages = {{.spans = {{.units = {0, 3}}}, .devices = {DeviceId{0}}},
                 {.spans = {{.units = {3, 6}}}, .devices = {DeviceId{1}}}};
  ASSERT_TRUE(check_plan(problem, plan).empty());
  const ExecProgram program = lower(problem.model).program;
  const ParameterLayout layout = parameter_layout(make_layout(problem, plan, program), program, 1);
  std::set<std::string> shared;
  for (const ParameterGroup& group : layout.groups)
    if (group.ranks.size() == 2)
      for (const SharedRange& range : group.ranges) shared.insert(range.name);
  EXPECT_EQ(shared, std::set<std::string>{"0.embedding.tokens.weight"});
}

TEST(WhyNot, SaysWhatCannotBeExecuted) {
  Problem problem = samples::tiny_problem(build_transformer(samples::tiny_llama()), Optimizer::sgd);
  Plan plan = samples::lone_plan(problem);
  EXPECT_EQ(unsupported_reason(problem, plan), "");
  plan.context = 2;
  EXPECT_EQ(unsupported_reason(problem, plan),
            "plait train has no context parallelism, the plan has cp 2");
  plan.context = 1;
  plan.schedule = Schedule::zb_h1;
  EXPECT_EQ(unsupported_reason(problem, plan),
            "plait train has the schedules gpipe, 1f1b and interleaved, the plan zb-h1");
  plan.schedule = Schedule::gpipe;
  problem.job.precision = Precision::fp8;
  EXPECT_EQ(unsupported_reason(problem, plan),
            "plait train trains in fp32, tf32 and bf16, not in fp8");
}

TEST(WhyNot, KeysThatAreRepeatedMayNotBeCutFromTheirQueries) {
  Problem problem = samples::tiny_problem(
      at_op_granularity(build_transformer(samples::tiny_llama())), Optimizer::sgd);
  Plan plan = samples::lone_plan(problem);
  Stage& stage = plan.stages[0];
  for (int d = 1; d < 4; ++d) stage.devices.push_back(DeviceId{d});
  // Units: embedding, attention.norm, attention.qkv ...; 2 key heads on 4 devices.
  const int units = problem.model.unit_count();
  stage.spans = {{.units = {0, 3}, .tensor = 4}, {.units = {3, units}, .tensor = 2, .data = 2}};
  ASSERT_TRUE(check_plan(problem, plan).empty());
  EXPECT_EQ(unsupported_reason(problem, plan),
            "a cut after 'attention.qkv' is not implemented where key-value heads are fewer than "
            "tensor 4");
}

TEST(WhyNot, SharedWeightsAreCutTheSameWayEverywhere) {
  Problem problem =
      samples::tiny_problem(build_transformer(samples::tiny_shared()), Optimizer::sgd);
  Plan plan = samples::lone_plan(problem);
  plan.stages = {{.spans = {{.units = {0, 3}, .tensor = 2}}, .devices = {DeviceId{0}, DeviceId{1}}},
                 {.spans = {{.units = {3, 6}, .tensor = 1}}, .devices = {DeviceId{2}}}};
  ASSERT_TRUE(check_plan(problem, plan).empty());
  EXPECT_EQ(
      unsupported_reason(problem, plan),
      "'attention.projection' has the same weights in layers of tensor 2 and 1; shards of them "
      "can only be summed where all layers have one degree (`tensor`)");
  plan.stages[1].spans[0].tensor = 2;
  plan.stages[1].devices.push_back(DeviceId{3});
  EXPECT_EQ(unsupported_reason(problem, plan), "");
}

}  // namespace
}  // namespace plait::runtime
