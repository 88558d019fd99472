#include <gtest/gtest.h>

#include "plan/check.h"
#include "plan/describe.h"
#include "random_problem.h"
#include "search/search.h"

namespace plait {
namespace {

const Planner& planner(std::string_view name) {
  for (const Planner& p : planners())
    if (p.name == name) return p;
  throw std::runtime_error("no such planner");
}

// auto must find what trying everything finds, on at least 500 problems.
TEST(Oracle, AutoEqualsExhaustiveOnRandomProblems) {
  std::mt19937_64 random(7);
  int solved = 0;
  int infeasible = 0;
  for (int i = 0; i < 520; ++i) {
    const Problem problem = random_problem(random, 2 + i % 5, 3 + i % 6);
    SearchContext context{problem, {.keep = 1}, {}, {}, {}};
    const SearchResult best = run_search(planner("auto"), context);
    context.options.max_evaluations = 3'000;
    const SearchResult truth = run_search(planner("exhaustive"), context);
    ASSERT_EQ(best.plans.empty(), truth.plans.empty()) << i;
    if (truth.plans.empty()) {
      ++infeasible;
      continue;
    }
    const double ratio = best.plans[0].cost.step / truth.plans[0].cost.step;
    EXPECT_LE(ratio, 1 + 1e-9) << i << "\n"
                               << describe(best.plans[0].plan) << "\n"
                               << describe(truth.plans[0].plan);
    EXPECT_LE(*best.lower_bound, best.plans[0].cost.step);
    if (truth.cut_short) continue;
    ++solved;
    EXPECT_NEAR(ratio, 1, 1e-9) << i;
    EXPECT_LE(*best.lower_bound, truth.plans[0].cost.step * (1 + 1e-9)) << i;
  }
  EXPECT_GE(solved, 200);
  printf("%d solved, %d infeasible\n", solved, infeasible);
}

}  // namespace
}  // namespace plait
