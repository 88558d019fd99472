#include <gtest/gtest.h>

#include "cost/engine.h"
#include "io/cluster/catalogue.h"
#include "named_problem.h"
#include "plan/check.h"
#include "plan/describe.h"
#include "random_problem.h"
#include "search/space/search.h"
#include "search/space/units/layers.h"

// What `auto` says to be proven is true: plans that are found elsewhere respect it.
namespace plait {
namespace {

SearchResult search(const Problem& problem, const Pins& pins, Seconds limit = Seconds(600)) {
  return run_search(planners().front(),
                    {problem, {.keep = 1, .time_limit = limit, .pins = pins}, {}, {}, {}});
}

// One pin more leaves a part of the space: no plan of it is faster than the bound. Returns both.
struct Pair {
  SearchResult whole;
  SearchResult part;
};
Pair expect_bound_below(const Problem& problem, const Pins& fewer, const Pins& more) {
  Pair pair{search(problem, fewer), search(problem, more)};
  if (pair.whole.lower_bound && !pair.part.plans.empty()) {
    EXPECT_LE(*pair.whole.lower_bound, pair.part.plans.front().cost.step * (1 + 1e-9))
        << describe(pair.part.plans.front().plan);
  }
  return pair;
}

TEST(Proofs, HoldWhereOnlyMixedStagesAreLeft) {
  // More replicas than any pool has devices: every stage is mixed.
  struct Case {
    const char* cluster;
    int batch;
    Pins pins;
  };
  const Case cases[] = {{"2xA100-80GB:8+2xV100-32GB:8", 64, {.data = 32}},
                        {"1xH200:4/10Gbps+1xL4:4/10Gbps+2xL40S:4/10Gbps", 48, {.data = 7}},
                        {"3xA100-80GB:8+2xA100-80GB:4", 64, {.micro_batch = 2}},
                        {"1xA100-40GB:4/40Gbps+7xA10:4/40Gbps", 64, {.data = 32}}};
  for (const Case& c : cases) {
    Problem problem = named_problem("gpt2-xl", c.cluster, c.batch);
    problem.job.precision = Precision::fp16;
    Pins one_stage = c.pins;
    one_stage.pipeline = 1;
    SCOPED_TRACE(c.cluster);
    const Pair pair = expect_bound_below(problem, c.pins, one_stage);
    ASSERT_FALSE(pair.whole.plans.empty());
    ASSERT_FALSE(pair.part.plans.empty());
    EXPECT_LE(pair.whole.plans[0].cost.step, pair.part.plans[0].cost.step * (1 + 1e-9));
  }
}

TEST(Proofs, HoldForEveryNumberOfReplicasOfMixedClusters) {
  std::mt19937_64 random(21);
  const std::string types[] = {"A100-80GB", "H100", "L40S"};
  for (int i = 0; i < 6; ++i) {
    std::string cluster;
    for (int t = 0; t < 2; ++t)
      cluster += (t > 0 ? "+" : "") + std::to_string(1 + random() % 3) + "x" + types[(i + t) % 3] +
                 ":" + std::to_string(2 + 2 * (random() % 4));
    const Problem problem = named_problem("gpt2-medium", cluster, 48);
    for (const int data : {6, 12, 16, 24}) {
      const Pins pins{.data = data};
      if (violation_of(problem, pins)) continue;
      SCOPED_TRACE(cluster + " --dp " + std::to_string(data));
      expect_bound_below(problem, pins, {.pipeline = 1, .data = data});
    }
  }
}

// Where the network is faster than the links inside nodes, tensor groups over several nodes are
// best. They are beyond the space that the bounds of one schedule hold for, which said 12.3 s of a
// problem with a plan of 9.8 s.
TEST(Proofs, OfOneScheduleHoldForDevicesInAnyPlace) {
  Problem problem = named_problem("llama-2-7b", "6xT4:4/800Gbps", 32);
  problem.job.framework = find_framework(builtin_catalogue(), "", "framework");
  problem.job.precision = Precision::fp16;
  const Pins pins{.schedule = Schedule::one_f_one_b};
  Pins more = pins;
  more.micro_batches = 8;
  const Pair pair = expect_bound_below(problem, pins, more);
  ASSERT_FALSE(pair.part.plans.empty());
  EXPECT_TRUE(pair.whole.lower_bound);
}

TEST(Proofs, NothingIsSaidNotToFitThatFits) {
  // 256 small devices on nodes of four sizes: 3.7 TiB of memory for 2.6 TiB of state.
  Problem problem =
      named_problem("bloom-176b",
                    "7xA10:2/400Gbps+8xA10:4/400Gbps+10xA10:6/400Gbps+3xA10:8/400Gbps+"
                    "9xL4:2/400Gbps+5xL4:4/400Gbps+4xL4:6/400Gbps+8xL4:8/400Gbps",
                    1024, 1024);
  problem.job.precision = Precision::fp16;
  EXPECT_FALSE(search(problem, {}).plans.empty());
}

TEST(Proofs, AreFoundForManyKindsOfNode) {
  // Three types, nodes of 1 to 8 devices: 24 pools, whose uniform pipelines have 2^24 combinations.
  std::string cluster;
  for (const char* type : {"H100", "A100-80GB", "V100-32GB"})
    for (int size = 1; size <= 8; ++size)
      cluster += (cluster.empty() ? "1x" : "+1x") + std::string(type) + ":" + std::to_string(size);
  const Problem problem = named_problem("llama-2-7b", cluster, 96);
  const SearchResult found = search(problem, {});
  ASSERT_FALSE(found.plans.empty());
  ASSERT_TRUE(found.lower_bound);
  EXPECT_LE(*found.lower_bound, found.plans.front().cost.step);
}

TEST(Proofs, OfEveryPassHoldForWhatIsFoundAtTheEnd) {
  std::mt19937_64 random(22);
  int passes = 0;
  for (int i = 0; i < 60; ++i) {
    const Problem problem = random_problem(random, 1 + i % 10, 2 + i % 24);
    Pins pins;
    if (i % 3 == 0) pins.schedule = Schedule::gpipe;
    if (i % 3 == 1) pins.schedule = Schedule::one_f_one_b;
    const SearchResult found = search(problem, pins);
    if (found.plans.empty() || i % 3 == 2) continue;  // bounds are those of the searched schedule
    for (const PassReport& pass : found.passes) {
      ++passes;
      EXPECT_LE(pass.lower_bound, found.plans.front().cost.step * (1 + 1e-9))
          << pass.name << " of problem " << i;
    }
  }
  EXPECT_GT(passes, 200);
}

// A plan by layers is a plan by ops as well.
void expect_ops_no_worse(const Problem& problem, const std::string& what) {
  Problem fine = problem;
  fine.model = at_op_granularity(problem.model);
  const auto view = seen_by_layers(fine.model);
  ASSERT_TRUE(view) << what;
  const SearchResult by_layers = search(problem, {});
  const SearchResult by_ops = search(fine, {});
  if (by_layers.plans.empty()) return;
  ASSERT_FALSE(by_ops.plans.empty()) << what;
  // Costed in the same way: what was found by layers, as a plan of the ops.
  const Seconds step = CostEngine(fine).simulate(in_ops(by_layers.plans[0].plan, *view)).step;
  EXPECT_LE(by_ops.plans[0].cost.step, step * (1 + 1e-9)) << what;
  if (by_ops.lower_bound) {
    EXPECT_LE(*by_ops.lower_bound, step * (1 + 1e-9)) << what;
  }
}

TEST(Granularity, OfOpsIsNeverWorseThanOfLayers) {
  std::mt19937_64 random(23);
  for (int i = 0; i < 20; ++i) {
    Problem problem = random_problem(random, 2 + i % 7, 2 + i % 14);
    expect_ops_no_worse(problem, "problem " + std::to_string(i));
  }
  expect_ops_no_worse(named_problem("gpt2", "2xA100-80GB:4", 32), "gpt2");
  expect_ops_no_worse(named_problem("gpt2-medium", "1xA100-80GB:4+2xV100-16GB:4", 32),
                      "gpt2-medium");
}

}  // namespace
}  // namespace plait
