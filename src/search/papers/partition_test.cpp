#include "search/papers/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace plait {
namespace {

double value_of(const PartitionProblem& problem, const std::vector<int>& cuts) {
  double sum = 0;
  double longest = 0;
  for (int s = 0; s < problem.stages; ++s) {
    const double time = problem.time(s, {cuts[s], cuts[s + 1]});
    if (time == HUGE_VAL) return HUGE_VAL;
    sum += time + (s > 0 ? problem.send(s - 1, cuts[s]) : 0);
    longest = std::max(longest, time);
  }
  return sum + (problem.micro_batches - 1) * longest;
}

double least_of_all(const PartitionProblem& problem, std::vector<int> cuts) {
  if (static_cast<int>(cuts.size()) == problem.stages) {
    cuts.push_back(problem.units);
    return value_of(problem, cuts);
  }
  double best = HUGE_VAL;
  const int left = problem.stages - static_cast<int>(cuts.size());
  for (int cut = cuts.back() + 1; cut + left <= problem.units; ++cut) {
    cuts.push_back(cut);
    best = std::min(best, least_of_all(problem, cuts));
    cuts.pop_back();
  }
  return best;
}

TEST(Partition, EqualsTryingAllCuts) {
  std::mt19937_64 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % n); };
  for (int i = 0; i < 300; ++i) {
    PartitionProblem problem;
    problem.units = 1 + below(9);
    problem.stages = 1 + below(std::min(problem.units, 5));
    problem.micro_batches = 1 + below(12);
    std::vector<double> work;
    std::vector<double> sends;
    std::vector<double> slowness;
    for (int u = 0; u < problem.units; ++u) work.push_back(1 + below(9));
    for (int u = 0; u < problem.units; ++u) sends.push_back(below(5));
    for (int s = 0; s < problem.stages; ++s) slowness.push_back(1 + below(3));
    const int most = 3 + below(7);  // units that fit in a stage
    problem.time = [&](int stage, const UnitRange& units) {
      if (units.size() > most) return HUGE_VAL;
      double sum = 0;
      for (int u = units.begin; u < units.end; ++u) sum += work[u];
      return sum * slowness[stage];
    };
    problem.send = [&](int stage, int unit) { return sends[unit] * slowness[stage]; };
    problem.stop = [] { return false; };
    const double truth = least_of_all(problem, {0});
    const std::vector<int> cuts = least_pipeline_time(problem);
    ASSERT_EQ(cuts.empty(), truth == HUGE_VAL) << i;
    if (cuts.empty()) continue;
    EXPECT_NEAR(value_of(problem, cuts), truth, 1e-9) << i;
  }
}

TEST(Partition, MoreStagesThanUnitsHaveNoCut) {
  EXPECT_TRUE(least_pipeline_time({.stages = 3, .units = 2}).empty());
}

}  // namespace
}  // namespace plait
