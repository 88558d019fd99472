#include "search/inside/chain_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/drawn_by.h"

namespace plait {
namespace {

// Random chains of up to 6 ops with up to 3 ways each, tied to memory in all three kinds.
struct RandomChain {
  ChainTask task;
  std::vector<std::vector<double>> changes;

  explicit RandomChain(unsigned seed) {
    std::mt19937 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % n); };
    const int ops = 1 + below(6);
    const int ways = 1 + below(3);
    changes.resize(ops);
    double most = 0;
    for (int o = 0; o < ops; ++o) {
      ChainOp op;
      op.starts_layer = o == 0 || below(3) == 0;
      // Now and then one that was there before.
      op.kind = o > 0 && below(3) == 0 ? below(o) : o;
      std::vector<ChainWay>& own = task.kinds.emplace_back();
      for (int w = 0; w < ways; ++w)
        own.push_back({1.0 + below(9), 1.0 * below(9), 1.0 * below(4), 1.0 * below(5),
                       1.0 * below(3), w == 0 ? 0 : 1 + below(2)});
      if (w_forbidden(below)) own.back().time = HUGE_VAL;
      for (int c = 0; c < ways * ways; ++c)
        changes[o].push_back(c % (ways + 1) == 0 ? 0 : 0.5 * below(6));
      most += 9;
      task.ops.push_back(op);
    }
    for (int o = 0; o < ops; ++o)
      if (seed % 3 != 0) task.ops[o].change = &changes[o];
    task.at_least = below(3);
    task.memory = 1 + most * (1 + below(10)) / 12;
  }
  template <typename Below>
  static bool w_forbidden(const Below& below) {
    return below(5) == 0;
  }
};

// Every choice, one by one.
double least_time(const ChainTask& task) {
  const int ways = static_cast<int>(task.kinds.front().size());
  std::vector<int> choice(task.ops.size(), 0);
  double best = HUGE_VAL;
  for (;;) {
    const ChainAnswer own = evaluate(task, choice);
    if (own.memory <= task.memory) best = std::min(best, own.time);
    std::size_t at = 0;
    while (at < choice.size() && ++choice[at] == ways) choice[at++] = 0;
    if (at == choice.size()) return best;
  }
}

TEST(ChainChoice, EqualsBruteForceOnRandomChains) {
  int fits = 0, bound_by_memory = 0;
  const unsigned first = 4000 * static_cast<unsigned>(drawn_by());
  for (unsigned seed = first; seed < first + 4000; ++seed) {
    const RandomChain chain(seed);
    const double least = least_time(chain.task);
    const auto found = choose_in_chain(chain.task);
    ASSERT_EQ(found.has_value(), least < HUGE_VAL) << "seed " << seed;
    if (!found) continue;
    ++fits;
    EXPECT_NEAR(found->time, least, 1e-9) << "seed " << seed;
    EXPECT_LE(found->bound, least + 1e-9) << "seed " << seed;
    EXPECT_LE(found->memory, chain.task.memory) << "seed " << seed;
    ChainTask free = chain.task;
    free.memory = 1e9;
    if (least > least_time(free) + 1e-9) ++bound_by_memory;
  }
  EXPECT_GT(fits, 1000);
  EXPECT_GT(bound_by_memory, 500);
}

// Ten layers of two ops, of which the second gives back 4 bytes for 1 second and the first 1 byte
// for 1 second: with 30 of 50 bytes the second op of five layers is recomputed.
TEST(ChainChoice, RecomputesWhatIsCheapest) {
  ChainTask task;
  task.kinds = {{{3, 1, 0, 0, 0, 0}, {4, 0, 0, 0, 0, 1}}, {{3, 4, 0, 0, 0, 0}, {4, 0, 0, 0, 0, 1}}};
  for (int layer = 0; layer < 10; ++layer) {
    task.ops.push_back({0, true, nullptr});
    task.ops.push_back({1, false, nullptr});
  }
  task.memory = 30;
  const auto found = choose_in_chain(task);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->time, 65);
  int first = 0, second = 0;
  for (int op = 0; op < 20; ++op) (op % 2 == 0 ? first : second) += found->ways[op];
  EXPECT_EQ(first, 0);
  EXPECT_EQ(second, 5);
  // Layers that are alike need not all change over at the price at which it is worth it, even where
  // no choices are listed.
  const auto coarse = choose_in_chain(task, {.precision = 0, .labels = 0});
  ASSERT_TRUE(coarse.has_value());
  EXPECT_EQ(coarse->time, 65);
}

}  // namespace
}  // namespace plait
