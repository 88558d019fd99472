#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "plan/check.h"
#include "plan/describe.h"
#include "search/space/search.h"
#include "second_opinion/local_search.h"
#include "second_opinion/mixed_problem.h"

// The planner and its bounds, judged by a search that shares no code with it.
namespace plait::second_opinion {
namespace {

// Of sums in another order.
constexpr double kRounding = 1e-9;

struct Judgement {
  int problems = 0;
  std::vector<double> ratios;  // auto's step over the second opinion's, less one
};

void judge(std::uint64_t seed, int most_devices, std::int64_t evaluations, Judgement& judgement) {
  const MixedProblem mixed = mixed_problem(seed, most_devices);
  const SearchContext context{mixed.problem, {.keep = 3}, {}, {}, {}};
  const SearchResult found = run_search(planners().front(), context);
  std::vector<Plan> given;
  for (const RankedPlan& ranked : found.plans) given.push_back(ranked.plan);
  const CostEngine engine(mixed.problem);
  const auto opinion = second_opinion(engine, given, {.seed = seed, .evaluations = evaluations});
  ++judgement.problems;
  if (!opinion) return;
  const std::string said =
      "seed " + std::to_string(seed) + ": " + mixed.arguments + "\n" + describe(opinion->plan);
  // The opinion itself is a plan that can be run.
  ASSERT_TRUE(check_plan(mixed.problem, opinion->plan).empty()) << said;
  ASSERT_TRUE(engine.simulate(opinion->plan).fits) << said;
  ASSERT_FALSE(found.plans.empty()) << "auto says that nothing fits. " << said;
  // No bound is above a plan that exists.
  const Seconds bound = found.lower_bound.value_or(Seconds(0));
  EXPECT_LE(bound, opinion->step * (1 + kRounding)) << said;
  const double ratio = found.plans.front().cost.step / opinion->step - 1;
  EXPECT_GE(ratio, -kRounding) << "the second opinion lost auto's own plan. " << said;
  judgement.ratios.push_back(ratio);
}

void print(Judgement& judgement) {
  std::ranges::sort(judgement.ratios);
  const auto at = [&](double part) {
    return judgement.ratios.empty()
               ? 0.0
               : 100 * judgement.ratios[static_cast<std::size_t>(
                           part * static_cast<double>(judgement.ratios.size() - 1))];
  };
  const auto beaten = std::ranges::count_if(judgement.ratios, [](double r) { return r > 0.01; });
  std::printf(
      "%d problems, %d beaten by more than 1 %%; median %.2f %%, ninth decile %.2f %%, "
      "worst %.2f %%\n",
      judgement.problems, static_cast<int>(beaten), at(0.5), at(0.9), at(1));
}

TEST(SecondOpinion, FindsNoPlanBelowABound) {
  Judgement judgement;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) judge(seed, 32, 600, judgement);
  print(judgement);
}

class SlowSecondOpinion : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Slow, SlowSecondOpinion, testing::Range(0, 10));

TEST_P(SlowSecondOpinion, FindsNoPlanBelowABoundOnLargeClusters) {
  Judgement judgement;
  for (std::uint64_t i = 0; i < 20; ++i) judge(1000 + 20 * GetParam() + i, 256, 5'000, judgement);
  print(judgement);
}

}  // namespace
}  // namespace plait::second_opinion
