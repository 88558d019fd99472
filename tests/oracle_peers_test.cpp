#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

#include "io/cluster/load_cluster.h"
#include "io/model/load_model.h"
#include "plan/describe.h"
#include "random_problem.h"
#include "search/space/search.h"
#include "source_tree.h"

// auto is never worse than a planner that follows somebody's paper.
namespace plait {
namespace {

SearchResult run(const Planner& planner, const Problem& problem, double variance) {
  SearchOptions options{.keep = 1};
  options.group_scale_variance = variance;
  return run_search(planner, SearchContext{problem, options, {}, {}, {}});
}

// Plans of peers that were compared.
int expect_no_peer_is_better(const Problem& problem, double variance, const std::string& what) {
  const SearchResult best = run(planners().front(), problem, variance);
  int compared = 0;
  for (const Planner& peer : planners()) {
    if (peer.name == "auto" || peer.name == "exhaustive") continue;
    const SearchResult other = run(peer, problem, variance);
    if (other.plans.empty()) continue;
    ++compared;
    EXPECT_FALSE(best.plans.empty()) << what << " " << peer.name;
    if (best.plans.empty()) continue;
    EXPECT_LE(best.plans[0].cost.step / other.plans[0].cost.step, 1 + 1e-9)
        << what << "\nauto:  " << describe(best.plans[0].plan) << "\n"
        << peer.name << ":  " << describe(other.plans[0].plan);
  }
  return compared;
}

class PeersOracle : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Slow, PeersOracle, testing::Range(0, 10));

// 10 x 200 problems, every third with a network that is slow.
TEST_P(PeersOracle, NoPeerIsBetterOnThousandsOfProblems) {
  int compared = 0;
  for (int i = 0; i < 200; ++i) {
    std::mt19937_64 random(7000 + 200 * GetParam() + i);
    Problem problem = random_problem(random, 1 + i % 10, 2 + i % 15);
    if (i % 3 == 0)
      for (Node& node : problem.cluster.nodes) node.uplink.bandwidth = BytesPerSecond(5e8);
    compared += expect_no_peer_is_better(problem, i % 2 == 0 ? 1 : 0.25,
                                         "problem " + std::to_string(200 * GetParam() + i));
  }
  std::printf("%d plans of peers\n", compared);
}

TEST(SlowPeersOracle, NoPeerIsBetterOnTheExamples) {
  const std::string folder = source_dir() + "/examples/clusters";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json" ||
        entry.path().filename().string().find("metis") != std::string::npos)
      continue;
    Problem problem;
    problem.model = load_model("gpt2-medium", std::nullopt).model;
    problem.cluster = load_cluster(entry.path().string()).cluster;
    problem.job.global_batch = 64;
    problem.job.precision = Precision::fp16;
    expect_no_peer_is_better(problem, 1, entry.path().filename().string());
  }
}

}  // namespace
}  // namespace plait
