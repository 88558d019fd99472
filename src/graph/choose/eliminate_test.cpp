#include "graph/choose/eliminate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

namespace plait::graph {
namespace {

ChoiceProblem random_problem(std::mt19937& random) {
  ChoiceProblem problem;
  const int count = 1 + static_cast<int>(random() % 6);
  const auto cost = [&] { return static_cast<double>(random() % 20); };
  for (int v = 0; v < count; ++v) {
    problem.single.emplace_back(1 + random() % 3);
    for (double& c : problem.single.back()) c = cost();
  }
  for (int a = 0; a < count; ++a)
    for (int b = 0; b < count; ++b) {
      if (a == b || random() % 3 != 0) continue;
      problem.pairs.push_back({a, b, {}});
      problem.pairs.back().cost.resize(problem.single[a].size() * problem.single[b].size());
      for (double& c : problem.pairs.back().cost) c = cost();
    }
  return problem;
}

// The least cost over all choices that `allowed` lets pass; infinity for none.
double by_force(const ChoiceProblem& problem,
                const std::function<bool(const std::vector<int>&)>& allowed) {
  double best = std::numeric_limits<double>::infinity();
  std::vector<int> values(problem.single.size(), 0);
  for (;;) {
    if (allowed(values)) best = std::min(best, cost_of(problem, values));
    std::size_t v = 0;
    while (v < values.size() && ++values[v] == static_cast<int>(problem.single[v].size()))
      values[v++] = 0;
    if (v == values.size()) return best;
  }
}

TEST(Eliminate, AgreesWithAllChoicesOfThousandsOfSmallGraphs) {
  std::mt19937 random(1);
  for (int i = 0; i < 3000; ++i) {
    const ChoiceProblem problem = random_problem(random);
    const auto result = eliminate(problem, 1e6);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->cost, by_force(problem, [](const auto&) { return true; }));
    EXPECT_EQ(result->cost, cost_of(problem, result->values));
  }
}

TEST(Eliminate, WithoutDominatedValuesTheLeastCostIsTheSame) {
  std::mt19937 random(3);
  int gone = 0;
  for (int i = 0; i < 3000; ++i) {
    const ChoiceProblem problem = random_problem(random);
    const auto left = undominated(problem);
    for (std::size_t v = 0; v < left.size(); ++v)
      gone += static_cast<int>(problem.single[v].size() - left[v].size());
    const auto result = eliminate(with_values(problem, left), 1e6);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->cost, by_force(problem, [](const auto&) { return true; }));
  }
  EXPECT_GT(gone, 1000);
}

TEST(Eliminate, ALimitOnUseIsKeptAndTheAnswerIsTheBest) {
  std::mt19937 random(2);
  for (int i = 0; i < 2000; ++i) {
    const ChoiceProblem problem = random_problem(random);
    std::vector<std::vector<double>> use;
    for (const auto& single : problem.single) {
      use.emplace_back(single.size());
      for (double& u : use.back()) u = static_cast<double>(random() % 10);
    }
    const double limit = static_cast<double>(random() % (8 * problem.single.size()));
    const auto fits = [&](const std::vector<int>& values) {
      double sum = 0;
      for (std::size_t v = 0; v < values.size(); ++v) sum += use[v][values[v]];
      return sum <= limit;
    };
    const double best = by_force(problem, fits);
    const auto result = choose_within(problem, use, limit, 400);
    ASSERT_EQ(result.has_value(), best < 1e300);
    if (!result) continue;
    EXPECT_TRUE(fits(result->values));
    EXPECT_NEAR(result->cost, best, 1e-9);
    EXPECT_LE(result->bound, best + 1e-9);
  }
}

TEST(Eliminate, DescentGivesAValidBoundWhereTablesWouldBeTooLarge) {
  std::mt19937 random(3);
  ChoiceProblem problem;
  for (int v = 0; v < 24; ++v) {
    problem.single.emplace_back(8);
    for (double& c : problem.single.back()) c = static_cast<double>(random() % 100);
  }
  for (int a = 0; a < 24; ++a)
    for (int b = a + 1; b < 24; ++b) {
      problem.pairs.push_back({a, b, std::vector<double>(64)});
      for (double& c : problem.pairs.back().cost) c = static_cast<double>(random() % 100);
    }
  EXPECT_FALSE(eliminate(problem, 4e6));
  const ChoiceResult result = choose(problem);
  EXPECT_EQ(result.cost, cost_of(problem, result.values));
  EXPECT_LE(result.bound, result.cost);
}

}  // namespace
}  // namespace plait::graph
