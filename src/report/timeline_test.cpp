#include "report/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "cost/engine.h"
#include "plan/sample_plans.h"

namespace plait {
namespace {

TEST(Timeline, ARunWithoutStepsIsATraceToo) {
  const auto file = nlohmann::json::parse(
      trace_file({Timeline(0, 0, "rank 0").text(), Timeline(1, 1, "rank 1").text()}));
  EXPECT_EQ(file.at("traceEvents").size(), 4u);  // the names of two stages and two ranks
}

TEST(Timeline, ThePredictedStepHasEveryTaskOnceAndEndsWithIt) {
  const Problem problem = samples::sample_problem();
  const Plan plan = samples::sample_plan();
  Trace trace;
  const Estimate estimate = CostEngine(problem).simulate(plan, &trace);
  const auto file = nlohmann::json::parse(predicted_trace(plan, estimate, trace));
  std::map<std::string, int> count;
  double end = 0;
  for (const auto& event : file.at("traceEvents")) {
    ++count[event.at("cat").get<std::string>()];
    if (event.at("ph") == "X")
      end = std::max(end, event.at("ts").get<double>() + event.at("dur").get<double>());
  }
  // Two stages, each forward and backward once for every micro-batch.
  EXPECT_EQ(count["forward"], 2 * plan.micro_batches);
  EXPECT_EQ(count["backward"], 2 * plan.micro_batches);
  EXPECT_EQ(count["end of step"], 4);
  EXPECT_NEAR(end * 1e-6, estimate.step.value, 1e-3 * estimate.step.value);
}

}  // namespace
}  // namespace plait
