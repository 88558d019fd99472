#include <gtest/gtest.h>

#include <cstdio>

#include "plan/describe.h"
#include "plan/sample_problems.h"
#include "random_problem.h"
#include "search/bound/proof.h"
#include "search/space/pins.h"
#include "search/space/search.h"

namespace plait {
namespace {

const Planner& planner(std::string_view name) {
  for (const Planner& p : planners())
    if (p.name == name) return p;
  throw std::runtime_error("no such planner");
}

// Shards of one test, so that they can run side by side: 8 x 65 = 520 problems.
class Oracle : public testing::TestWithParam<int> {};
constexpr int kProblemsPerShard = 65;
INSTANTIATE_TEST_SUITE_P(Shards, Oracle, testing::Range(0, 8));

// auto finds what trying everything finds. Problems that are too large to try everything (counted
// in plans, so that the same ones are chosen on every machine) are passed over. Where the network
// limits a step, recompute costs nothing, since gradients hide behind it, and rounding decides
// which of two equal plans is the faster one.
constexpr double kTie = 1e-7;
TEST_P(Oracle, AutoEqualsExhaustiveOnRandomProblems) {
  std::mt19937_64 random(100 + GetParam());
  int solved = 0;
  int infeasible = 0;
  for (int i = 0; solved < kProblemsPerShard; ++i) {
    const Problem problem = random_problem(random, 1 + i % 6, 2 + i % 7);
    SearchContext context{problem, {.keep = 1}, {}, {}, {}};
    // `exhaustive` lists plans under one schedule; where others are free, moves go beyond it.
    context.options.pins.schedule = Schedule::one_f_one_b;
    if (random() % 2 == 0) context.options.pins.zero = ZeroStage::off;
    if (random() % 3 == 0) context.options.pins.recompute = Recompute::none;
    context.options.max_evaluations = 6000;
    const SearchResult truth = run_search(planner("exhaustive"), context);
    if (truth.cut_short) continue;
    ++solved;
    context.options.max_evaluations = 0;
    const SearchResult best = run_search(planner("auto"), context);
    ASSERT_EQ(best.plans.empty(), truth.plans.empty()) << "problem " << i;
    if (truth.plans.empty()) {
      ++infeasible;
      continue;
    }
    EXPECT_NEAR(best.plans[0].cost.step / truth.plans[0].cost.step, 1, kTie)
        << "problem " << i << "\nauto:       " << describe(best.plans[0].plan)
        << "\nexhaustive: " << describe(truth.plans[0].plan);
    const double proven = *best.lower_bound / truth.plans[0].cost.step;
    EXPECT_LE(proven, 1 + kTie) << "problem " << i;
    EXPECT_GE(proven, 1 - kTie - most_saved_forward(context, CostEngine(problem)))
        << "problem " << i;
  }
  std::printf("%d problems, %d of them infeasible\n", solved, infeasible);
  EXPECT_LT(infeasible, solved / 2);
}

// For a program with rules of its own, without ZeRO. Moves may find an order of devices beyond what
// is listed.
TEST_P(Oracle, AutoIsAsGoodAsExhaustiveForAcesosRuntime) {
  std::mt19937_64 random(300 + GetParam());
  int solved = 0;
  for (int i = 0; i < 60; ++i) {
    Problem problem = random_problem(random, 1 + i % 6, 2 + i % 3);
    problem.job.precision = Precision::fp16;
    SearchContext context{problem, {.keep = 1}, {}, {}, {}};
    context.options.target = *target_named("aceso");
    if (violation_of(problem, {}, context.options.target)) continue;
    context.options.max_evaluations = 6000;
    const SearchResult truth = run_search(planner("exhaustive"), context);
    if (truth.cut_short || truth.plans.empty()) continue;
    ++solved;
    context.options.max_evaluations = 0;
    const SearchResult best = run_search(planner("auto"), context);
    ASSERT_FALSE(best.plans.empty()) << "problem " << i;
    EXPECT_LE(best.plans[0].cost.step / truth.plans[0].cost.step, 1 + kTie)
        << "problem " << i << "\nauto:       " << describe(best.plans[0].plan)
        << "\nexhaustive: " << describe(truth.plans[0].plan);
  }
  EXPECT_GT(solved, 15);
}

// Settings without ZeRO are left out only where those with it take their place.
TEST(AutoSearch, PlansForAProgramThatHasNoZero) {
  Job job;
  job.global_batch = 64;
  job.precision = Precision::fp16;
  const Problem problem = samples::problem_of(samples::gpt(24, 1024, 16, 1024),
                                              samples::cluster_of(samples::a100(), 1, 4), job);
  SearchContext context{problem, {.keep = 1}, {}, {}, {}};
  context.options.target = *target_named("aceso");
  context.options.effort = Effort::quick;
  EXPECT_FALSE(run_search(planner("auto"), context).plans.empty());
}

// The closed form under a cutoff leaves out slower plans and no others.
TEST_P(Oracle, ACutoffChangesNothingBelowIt) {
  std::mt19937_64 random(200 + GetParam());
  int solved = 0;
  std::int64_t all = 0;
  std::int64_t below = 0;
  for (int i = 0; i < 60; ++i) {
    const Problem problem = random_problem(random, 1 + i % 6, 2 + i % 5);
    SearchContext context{problem, {.keep = 3}, {}, {}, {}};
    context.options.pins.schedule = i % 4 == 0 ? Schedule::gpipe : Schedule::one_f_one_b;
    context.options.max_evaluations = 3000;
    const SearchResult truth = run_search(planner("exhaustive"), context);
    if (truth.cut_short || truth.plans.empty()) continue;
    ++solved;
    context.options.cutoff = (1 + kTie) * truth.plans.back().cost.step;
    const SearchResult cut = run_search(planner("exhaustive"), context);
    ASSERT_EQ(cut.plans.size(), truth.plans.size()) << "problem " << i;
    for (std::size_t k = 0; k < cut.plans.size(); ++k)
      EXPECT_EQ(cut.plans[k].plan, truth.plans[k].plan) << "problem " << i << ", plan " << k;
    all += truth.evaluations;
    below += cut.evaluations;
  }
  EXPECT_GT(solved, 20);
  EXPECT_LT(below, all / 4);
}

}  // namespace
}  // namespace plait
