#include "report/timeline_svg.h"

#include <gtest/gtest.h>

#include <string_view>

#include "cost/engine.h"
#include "plan/sample_plans.h"

namespace plait {
namespace {

int count(std::string_view text, std::string_view part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(TimelineSvg, HasARowForEachStageAndABoxForEachPass) {
  const Problem problem = samples::sample_problem();
  const Plan plan = samples::sample_plan();
  Trace trace;
  const Estimate estimate = CostEngine(problem).simulate(plan, &trace);
  const std::string svg = timeline_svg(plan, estimate, trace);
  EXPECT_TRUE(svg.starts_with("<svg")) << svg;
  EXPECT_EQ(count(svg, ">stage "), 2);
  // Two stages, forward and backward once for every micro-batch, gradients and update; four entries
  // of the key. Passes that are too narrow are joined, so that there may be fewer.
  const int most = 2 * (2 * plan.micro_batches + 2) + 4;
  EXPECT_LE(count(svg, "<rect"), most);
  EXPECT_GT(count(svg, "<rect"), 2 * 4 + 4);
}

TEST(TimelineSvg, StaysSmallHoweverManyMicroBatchesThereAre) {
  const Plan plan = samples::sample_plan();
  Estimate estimate;
  estimate.stages.resize(2);
  Trace trace;
  constexpr int kPasses = 100'000;
  for (int i = 0; i < kPasses; ++i)
    for (int s = 0; s < 2; ++s)
      trace.events.push_back({.stage = s,
                              .task = {i % 2 == 0 ? TaskKind::forward : TaskKind::backward, 0, i},
                              .begin = Seconds(i),
                              .end = Seconds(i + 1)});
  trace.stage_end = {Seconds(kPasses), Seconds(kPasses)};
  // 900 pixels a row, at most a box for each, of less than 100 characters.
  EXPECT_LT(timeline_svg(plan, estimate, trace).size(), 2u * 900 * 100 + 2000);
}

}  // namespace
}  // namespace plait
