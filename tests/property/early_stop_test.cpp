#include <gtest/gtest.h>

#include "named_problem.h"
#include "plan/check.h"
#include "search/space/search.h"

// A search may be stopped at any moment. What it then says must still be true: plans that are
// sound, and a bound that is one, or none.
namespace plait {
namespace {

// Stops at the k-th sign of life that the search gives.
SearchResult stopped_after(const Planner& planner, const Problem& problem, int k) {
  std::stop_source stop;
  const auto sign_of_life = [&] {
    if (k-- <= 0) stop.request_stop();
  };
  sign_of_life();
  return run_search(planner,
                    {.problem = problem,
                     .options = {.keep = 2},
                     .stop = stop.get_token(),
                     .on_improvement = [&](const RankedPlan&, std::int64_t) { sign_of_life(); },
                     .on_progress = [&](double) { sign_of_life(); }});
}

void expect_true(const Problem& problem, const SearchResult& found, const std::string& when) {
  for (const RankedPlan& ranked : found.plans)
    EXPECT_TRUE(check_plan(problem, ranked.plan).empty()) << when;
  if (!found.lower_bound) return;
  EXPECT_GT(*found.lower_bound, Seconds(0)) << when;
  ASSERT_FALSE(found.plans.empty()) << when;
  EXPECT_LE(*found.lower_bound, found.plans.front().cost.step * (1 + 1e-9)) << when;
}

// How often the search was cut short.
int stop_at_many_moments(const Planner& planner, const Problem& problem) {
  int cut_short = 0;
  for (const int k : {0, 1, 2, 3, 4, 6, 8, 11, 15, 20, 26, 34, 45, 60}) {
    const SearchResult found = stopped_after(planner, problem, k);
    expect_true(problem, found, std::string(planner.name) + " " + std::to_string(k));
    if (!found.cut_short) break;
    ++cut_short;
  }
  return cut_short;
}

TEST(EarlyStop, LeavesATrueAnswerAtAnyMoment) {
  const Problem small = named_problem("gpt2-large", "1xA100-80GB:4+2xV100-16GB:4", 32);
  int cut_short = 0;
  for (const Planner& planner : planners())
    if (planner.name != "exhaustive")  // has no end on this
      cut_short += stop_at_many_moments(planner, small);
  const Problem larger = named_problem("llama-2-13b", "2xH100:8/25Gbps+2xA100-80GB:8/25Gbps", 96);
  cut_short += stop_at_many_moments(planners().front(), larger);
  EXPECT_GT(cut_short, 20);
}

TEST(EarlyStop, BeforeTheBeginningProvesNothing) {
  const Problem problem = named_problem("gpt2", "2xA100-80GB:4", 32);
  const SearchResult found = stopped_after(planners().front(), problem, 0);
  EXPECT_TRUE(found.cut_short);
  EXPECT_FALSE(found.lower_bound);
}

}  // namespace
}  // namespace plait
