#include <gtest/gtest.h>

#include <stdexcept>

#include "cost/engine.h"
#include "plan/check.h"
#include "plan/sample_problems.h"
#include "plan/target.h"
#include "search/papers/alleviation.h"
#include "search/space/search.h"

namespace plait {
namespace {

const Planner& named(std::string_view name) {
  for (const Planner& planner : planners())
    if (planner.name == name) return planner;
  throw std::runtime_error("no such planner");
}

Problem small_problem(int layers, int nodes, int per_node) {
  Job job;
  job.global_batch = 16;
  return samples::problem_of(samples::gpt(layers, 256, 4, 128),
                             samples::cluster_of(samples::a100(), nodes, per_node), job);
}

TEST(AcesoPlanner, FindsSoundPlansAndNoneThatAutoMisses) {
  for (const Problem& problem : {small_problem(4, 1, 4), small_problem(6, 2, 2)}) {
    const SearchResult best = run_search(named("auto"), {problem, {.keep = 1}, {}, {}, {}});
    const SearchResult own = run_search(named("aceso"), {problem, {.keep = 1}, {}, {}, {}});
    ASSERT_FALSE(own.plans.empty());
    ASSERT_FALSE(best.plans.empty());
    EXPECT_TRUE(check_plan(problem, own.plans[0].plan).empty());
    EXPECT_GE(own.plans[0].cost.step.value, best.plans[0].cost.step.value * (1 - 1e-9));
  }
}

TEST(AcesoPlanner, StaysWithinItsNumbersOfStagesAndItsBudget) {
  const Problem problem = small_problem(6, 1, 4);
  SearchOptions options{.keep = 5};
  options.first_stages = options.last_stages = 2;
  const SearchResult two = run_search(named("aceso"), {problem, options, {}, {}, {}});
  ASSERT_FALSE(two.plans.empty());
  for (const RankedPlan& ranked : two.plans) EXPECT_EQ(ranked.plan.stage_count(), 2);
  options.max_evaluations = 20;
  const SearchResult few = run_search(named("aceso"), {problem, options, {}, {}, {}});
  EXPECT_LT(few.evaluations, two.evaluations);
}

// Of layers and of single ops.
TEST(AcesoPlanner, KeepsPinnedDegrees) {
  for (const bool in_ops : {false, true}) {
    Problem problem = small_problem(4, 1, 4);
    if (in_ops) problem.model = at_op_granularity(problem.model);
    SearchOptions options{.keep = 5};
    options.target = *target_named("plait");
    options.pins.tensor = 2;
    for (const char* planner : {"aceso", "auto"}) {
      const SearchResult found = run_search(named(planner), {problem, options, {}, {}, {}});
      EXPECT_FALSE(found.plans.empty()) << planner;
      for (const RankedPlan& ranked : found.plans)
        for (const Stage& stage : ranked.plan.stages)
          for (const Span& span : stage.spans) EXPECT_EQ(span.tensor, 2) << planner;
    }
  }
}

// 10 units on 4 stages are 2, 2, 2 and the rest; 8 devices double all stages once.
TEST(AcesoPlanner, StartsFromEqualStagesOnPowersOfTwo) {
  const Problem problem = small_problem(8, 1, 8);
  const Space space(problem, {});
  const auto start = balanced_pipeline(space, 4, 0);
  ASSERT_TRUE(start.has_value());
  std::vector<int> units, devices;
  for (const AlleviatedStage& stage : start->stages) {
    units.push_back(stage.units);
    devices.push_back(stage.devices);
  }
  EXPECT_EQ(units, (std::vector<int>{2, 2, 2, 4}));
  EXPECT_EQ(devices, (std::vector<int>{2, 2, 2, 2}));
}

}  // namespace
}  // namespace plait
