#include "graph/solve/solve.h"

#include <gtest/gtest.h>

#include "graph/solve/branch.h"
#include "graph/solve/dual.h"
#include "graph/solve/reduce.h"
#include "graph/solve/regions.h"
#include "graph/solve/repair.h"
#include "graph/solve/sample_instances.h"

namespace plait::solve {
namespace {

// Two tensors that live together at time 1. Both in the fast choice take 4 + 4 > 6, so one of them
// must be slow: 0 is 10 slower, 1 is 3 slower, and the pair (fast, slow) costs 2 to reshard.
Instance two_tensors() {
  Instance instance;
  instance.nodes = {{0, 2, {1, 11}, {4, 1}}, {1, 3, {1, 4}, {4, 1}}};
  instance.edges = {{0, 1, {0, 2, 2, 0}}};
  instance.usage_limit = 6;
  return instance;
}

TEST(GraphSolve, PaysForMemoryWhereItIsCheapest) {
  const Solution solution = solve(two_tensors(), {});
  EXPECT_EQ(solution.choices, (std::vector<int>{0, 1}));  // 1 + 4 + 2
  EXPECT_EQ(solution.cost, 7);
  EXPECT_EQ(solution.lower_bound, 7);
  EXPECT_EQ(solution.gap(), 0);
}

TEST(GraphSolve, IntervalsAreHalfOpen) {
  Instance instance = two_tensors();
  instance.nodes[1].begin = 2;  // the first ends at 2, so they never live together
  EXPECT_EQ(solve(instance, {}).cost, 2);
}

TEST(GraphSolve, SaysThatTheLeastUsageIsTooMuch) {
  Instance instance = two_tensors();
  instance.usage_limit = 1;  // 1 + 1 at time 1
  const Solution solution = solve(instance, {});
  EXPECT_FALSE(solution.found());
  EXPECT_TRUE(solution.proven_none);
  EXPECT_EQ(solution.reason,
            "no allowed combination of choices fits into the memory: the least usage of all nodes "
            "adds up to 2 at time 1, and the limit is 1");
}

TEST(GraphSolve, SaysThatEveryCombinationIsForbidden) {
  Instance instance = two_tensors();
  instance.edges[0].cost.assign(4, kForbidden);
  const Solution solution = solve(instance, {});
  EXPECT_TRUE(solution.proven_none);
  EXPECT_EQ(solution.reason,
            "every combination of choices has a cost of 10^18 or more, which means not allowed");
}

TEST(GraphSolve, NoNodesCostNothing) {
  const Solution solution = solve({}, {});
  EXPECT_EQ(solution.cost, 0);
  EXPECT_EQ(solution.reason, "");
}

TEST(GraphSolve, AgreesWithTryingEverything) {
  std::mt19937 random(1);
  int solved = 0;
  for (int i = 0; i < 6000; ++i) {
    const Instance instance = random_instance(random);
    const Amount best = least_cost(instance);
    const Solution solution = solve(instance, {});
    ASSERT_EQ(solution.found(), best < kForbidden) << i;
    if (!solution.found()) {
      ASSERT_TRUE(solution.proven_none) << i;
      continue;
    }
    ++solved;
    ASSERT_EQ(solution.cost, best) << i;
    ASSERT_EQ(solution.lower_bound, best) << i;
    ASSERT_EQ(score(instance, solution.choices).cost, best) << i;
  }
  EXPECT_GT(solved, 2000);
}

TEST(GraphSolve, BoundsHoldWhereverTheWorkEnds) {
  std::mt19937 random(2);
  for (int i = 0; i < 3000; ++i) {
    const Instance instance = random_instance(random);
    const Amount best = least_cost(instance);
    SolveOptions options;
    options.work = random() % 4000;
    const Solution solution = solve(instance, options);
    ASSERT_LE(solution.lower_bound, best) << i;
    ASSERT_TRUE(!solution.found() || solution.cost >= best) << i;
    ASSERT_TRUE(!solution.proven_none || best == kForbidden) << i;
  }
}

TEST(GraphReduce, KeepsTheLeastCost) {
  std::mt19937 random(3);
  for (int i = 0; i < 6000; ++i) {
    const Instance instance = random_instance(random);
    const Amount best = least_cost(instance);
    Network network = make_network(instance);
    ASSERT_EQ(least_cost(network), best) << i;
    reduce(network, {});
    ASSERT_EQ(least_cost(network), best) << i;
    if (best >= kForbidden) continue;
    Network below = make_network(instance);
    reduce(below, {.below = best + 1});
    ASSERT_EQ(least_cost(below), best) << i;
  }
}

// Every claim of the dual about a choice or a pair, against trying everything with it.
TEST(GraphDual, NeverClaimsTooMuch) {
  std::mt19937 random(4);
  for (int i = 0; i < 1500; ++i) {
    Network network = make_network(random_instance(random));
    reduce(network, {});
    if (network.impossible) continue;
    const Amount best = least_cost(network);
    Dual dual(network);
    std::vector<int> position;
    for (int sweep = 0; sweep < 1 + i % 12; ++sweep) {
      dual.sweep();
      ASSERT_LE(whole_bound(dual.bound()), best) << i;
      dual.decode(false, position);
      dual.step(position, best < kForbidden ? static_cast<double>(best) : 100.0, 1);
    }
    dual.sweep();
    for (std::size_t v = 0; v < network.variables.size(); ++v)
      for (int k = 0; network.variables[v].alive && k < network.variables[v].size(); ++k)
        ASSERT_LE(whole_bound(dual.slack_base() + dual.slack(static_cast<int>(v))[k]),
                  least_cost(network, [&](const auto& p) { return p[v] == k; }))
            << i;
    for (std::size_t l = 0; l < network.links.size(); ++l) {
      const Link& link = network.links[l];
      for (int c = 0; c < static_cast<int>(link.cost.size()); ++c) {
        const int a = c / network.variables[link.v].size(),
                  b = c % network.variables[link.v].size();
        if (link.cost[c] >= kForbidden) continue;
        ASSERT_LE(
            whole_bound(dual.bound() + dual.pair_slack(static_cast<int>(l), a, b)),
            least_cost(network, [&](const auto& p) { return p[link.u] == a && p[link.v] == b; }))
            << i;
      }
    }
  }
}

// A chain of 60 nodes with memory that binds: too many answers to try, enough regions to draw.
Instance long_chain() {
  std::mt19937 random(9);
  Instance instance;
  for (int i = 0; i < 60; ++i) {
    Node node{i, i + 4, {}, {}};
    for (int k = 0; k < 4; ++k) {
      node.cost.push_back(static_cast<Amount>(random() % 50));
      node.usage.push_back(static_cast<Amount>(k == 0 ? 1 : random() % 9));
    }
    instance.nodes.push_back(node);
    for (const int back : {1, 2, 7}) {
      if (i < back) continue;
      Edge edge{i - back, i, {}};
      for (int c = 0; c < 16; ++c)
        edge.cost.push_back(random() % 8 == 0 ? kForbidden : static_cast<Amount>(random() % 40));
      instance.edges.push_back(edge);
    }
  }
  instance.usage_limit = 12;
  return instance;
}

TEST(GraphSolve, ThreadsDoNotChangeTheAnswer) {
  const Instance instance = long_chain();
  SolveOptions options;
  options.work = 20'000'000;
  const Solution one = solve(instance, options);
  options.threads = 3;
  const Solution three = solve(instance, options);
  ASSERT_TRUE(one.found());
  EXPECT_EQ(one.choices, three.choices);
  EXPECT_EQ(one.lower_bound, three.lower_bound);
  EXPECT_EQ(one.work, three.work);
}

TEST(GraphRegions, OnlyImprove) {
  Network network = make_network(long_chain());
  reduce(network, {});
  std::vector<int> origin;
  const Network root = compacted(network, origin);
  std::size_t used = 0;
  std::vector<int> position = find_any(root, {.work = 100'000'000}, used);
  ASSERT_FALSE(position.empty());
  const Position before = evaluate(root, position);
  EXPECT_TRUE(before.fits);
  EXPECT_LT(before.cost, kForbidden);
  improve_by_regions(root, position, {}, {.work = 30'000'000});
  const Position after = evaluate(root, position);
  EXPECT_TRUE(after.fits);
  EXPECT_LT(after.cost, before.cost);
  EXPECT_GE(after.cost, solve(long_chain(), {.work = 20'000'000}).lower_bound);
}

TEST(GraphSolve, AStopEndsItWithAValidBound) {
  SolveOptions options;
  options.stop = [] { return true; };
  const Solution solution = solve(long_chain(), options);
  EXPECT_FALSE(solution.found());
  EXPECT_FALSE(solution.proven_none);
  EXPECT_EQ(solution.lower_bound, 0);
}

}  // namespace
}  // namespace plait::solve
