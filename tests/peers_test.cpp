#include <gtest/gtest.h>

#include <cstdio>
#include <set>

#include "plan/describe.h"
#include "random_problem.h"
#include "search/search.h"
#include "search/space.h"

namespace plait {
namespace {

const Planner& planner(std::string_view name) {
  for (const Planner& p : planners())
    if (p.name == name) return p;
  throw std::runtime_error("no such planner");
}

constexpr std::string_view kPeers[] = {"amp", "fasop", "metis"};

SearchResult run(std::string_view name, const Problem& problem, const SearchOptions& options) {
  return run_search(planner(name), SearchContext{problem, options, {}, {}, {}});
}

// Whether a tensor group lies on devices that differ in their node's size or network: `auto` cuts
// tensors over equal devices only.
bool has_mixed_tensor_group(const Problem& problem, const Plan& plan) {
  std::vector<int> pool_of(problem.cluster.devices.size());
  const std::vector<Pool> pools = pools_of(problem.cluster);
  for (std::size_t p = 0; p < pools.size(); ++p)
    for (const DeviceId id : pools[p].devices) pool_of[index(id)] = static_cast<int>(p);
  for (const Stage& stage : plan.stages)
    for (std::size_t i = 0; i < stage.devices.size(); ++i) {
      const std::size_t first = i - i % stage.spans[0].tensor;
      if (pool_of[index(stage.devices[i])] != pool_of[index(stage.devices[first])]) return true;
    }
  return false;
}

// Shards of one test, so that they can run side by side: 4 x 60 = 240 problems.
class Peers : public testing::TestWithParam<int> {};
constexpr int kProblemsPerShard = 500;
INSTANTIATE_TEST_SUITE_P(Shards, Peers, testing::Range(0, 4));

// run_search itself checks that every plan is sound and fits.
TEST_P(Peers, AutoIsNeverWorseOnRandomProblems) {
  int solved = 0;
  for (int i = 0; i < kProblemsPerShard; ++i) {
    const unsigned seed = 1000 * GetParam() + i;
    std::mt19937_64 random(seed);
    const Problem problem = random_problem(random, 1 + i % 8, 2 + i % 9);
    SearchOptions options{.keep = 1};
    options.group_scale_variance = i % 2 == 0 ? 1 : 0.25;
    const SearchResult best = run("auto", problem, options);
    for (const std::string_view peer : kPeers) {
      const SearchResult other = run(peer, problem, options);
      if (other.plans.empty()) continue;
      ++solved;
      ASSERT_FALSE(best.plans.empty()) << "seed " << seed << " " << peer;
      EXPECT_LE(best.plans[0].cost.step / other.plans[0].cost.step, 1 + 1e-9)
          << "seed " << seed << " mixed " << has_mixed_tensor_group(problem, other.plans[0].plan)
          << " devices " << problem.cluster.device_count()
          << "\nauto:  " << describe(best.plans[0].plan) << "\n"
          << peer << ":  " << describe(other.plans[0].plan);
    }
  }
  std::printf("%d plans of peers\n", solved);
  EXPECT_GT(solved, kProblemsPerShard);
}

}  // namespace
}  // namespace plait
