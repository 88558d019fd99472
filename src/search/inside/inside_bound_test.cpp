#include "search/inside/inside_bound.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "plan/sample_problems.h"
#include "search/space/pins.h"
#include "search/space/space.h"

namespace plait {
namespace {

struct BoundAndBest {
  Seconds bound;
  Seconds best;
  bool is_found = false;
};

// Of a model by ops, as Aceso's runtime runs it.
BoundAndBest bounded(const Problem& problem, const Pins& pins) {
  SearchOptions options{.keep = 1};
  options.target = *target_named("aceso");
  options.pins = pins;
  const CostEngine engine(problem);
  const Space space(problem, pins, options.target);
  SearchContext context{problem, options, {}, {}, {}};
  context.deadline = std::chrono::steady_clock::now() + std::chrono::hours(1);
  context.engine = &engine;
  context.space = &space;
  EXPECT_TRUE(may_bound_insides(context));
  const SearchResult found = run_search(planners().front(), {problem, options, {}, {}, {}});
  if (found.plans.empty()) return {};
  // What is printed is at most the best plan; this is not.
  return {least_step_inside(context, Seconds(HUGE_VAL)), found.plans.front().cost.step, true};
}

Problem random_ops(std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % n); };
  Job job;
  job.global_batch = 16 << below(3);
  job.attention = below(2) == 0 ? AttentionKernel::plain : AttentionKernel::flash;
  job.precision = Precision::fp32;
  Problem problem =
      samples::problem_of(samples::gpt(2 + below(4), 512 << below(2), 8, 512 << below(2)),
                          samples::cluster_of(samples::a100(), 1 + below(2), 1 << below(3)), job);
  const double share = 0.01 + 0.004 * below(8);
  problem.job.memory_limit = share * problem.cluster.device_types.front().memory;
  problem.model = at_op_granularity(problem.model);
  return problem;
}

TEST(InsideBound, IsBelowTheBestPlanAndNearIt) {
  std::mt19937 random(7);
  int solved = 0;
  int near = 0;
  for (int i = 0; i < 15; ++i) {
    const Problem problem = random_ops(random);
    const BoundAndBest own = bounded(problem, {});
    if (!own.is_found) continue;
    ++solved;
    EXPECT_LE(own.bound, own.best) << "problem " << i;
    near += own.bound > 0.8 * own.best ? 1 : 0;
  }
  EXPECT_GT(solved, 5);
  EXPECT_GT(near, solved / 3);
}

// One stage, one pair of degrees, no recompute: one plan, of which the bound lacks what follows the
// pipeline.
TEST(InsideBound, OfOnePlanIsItsPipeline) {
  std::mt19937 random(11);
  int solved = 0;
  for (int i = 0; i < 12; ++i) {
    Problem problem = random_ops(random);
    problem.job.memory_limit = {};
    const int devices = problem.cluster.device_count();
    Pins pins;
    pins.pipeline = 1;
    pins.micro_batches = 4;
    pins.tensor = 1;
    pins.recompute = Recompute::none;
    if (violation_of(problem, pins, *target_named("aceso"))) continue;
    const BoundAndBest own = bounded(problem, pins);
    if (!own.is_found || devices > problem.job.global_batch / 4) continue;
    ++solved;
    EXPECT_LE(own.bound, own.best) << "problem " << i;
    EXPECT_GT(own.bound, 0.5 * own.best) << "problem " << i;
  }
  EXPECT_GT(solved, 5);
}

TEST(InsideBound, KnowsWhatMemoryForces) {
  std::mt19937 random(3);
  Problem problem = random_ops(random);
  problem.job.memory_limit = {};
  const BoundAndBest wide = bounded(problem, {});
  problem.job.memory_limit = 0.02 * problem.cluster.device_types.front().memory;
  const BoundAndBest narrow = bounded(problem, {});
  ASSERT_TRUE(wide.is_found && narrow.is_found);
  EXPECT_GE(narrow.bound, wide.bound);
  EXPECT_LE(narrow.bound, narrow.best);
}

}  // namespace
}  // namespace plait
