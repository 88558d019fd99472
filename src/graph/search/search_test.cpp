#include "graph/search/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/error.h"
#include "graph/search/pins.h"
#include "graph/search/sample_divisions.h"

namespace plait::graph {
namespace {

using samples::example;
using samples::mesh_of;
using samples::total_traffic;

double all_reduce_bytes(double size, double devices) { return 2 * (devices - 1) / devices * size; }

// Closed forms of Alpa's own tests (tests/shard_parallel/test_mlp.py), f32.
TEST(Search, ALargeBatchIsDividedByDataParallelism) {
  // n layers: n all-reduces of the weight gradients, hidden^2 * 4 bytes each.
  const Analysis analysis = analyze(samples::mlp_step(4, 1024, 128), "mlp");
  const SearchResult result = search(analysis, mesh_of({4}));
  ASSERT_TRUE(result.best);
  EXPECT_EQ(total_traffic(*result.best), 4 * all_reduce_bytes(128 * 128 * 4, 4));
  for (std::size_t b = 0; b < 4; ++b)
    EXPECT_EQ(text_of(result.best->strategies[b], analysis.blocks.blocks[b], result.best->mesh),
              "rows over x");
}

TEST(Search, ALargeModelIsDividedAsMegatronDoes) {
  // n layers: n - 1 all-reduces of activations, batch * hidden * 4 bytes each (as all-reduces, or
  // as many reduce-scatters and all-gathers).
  const Analysis analysis = analyze(samples::mlp_step(4, 128, 1024), "mlp");
  const SearchResult result = search(analysis, mesh_of({4}));
  ASSERT_TRUE(result.best);
  EXPECT_EQ(total_traffic(*result.best), 3 * all_reduce_bytes(128 * 1024 * 4, 4));
}

TEST(Search, OnTwoAxesTheBatchAndTheModelAreDivided) {
  // n layers: n all-reduces of half a weight gradient along the axis of the batch, n - 1 of half an
  // activation along the other. There are better plans.
  const Analysis analysis = analyze(samples::mlp_step(4, 2048, 1024), "mlp");
  const Mesh mesh = mesh_of({2, 2});
  const GraphCosts costs = costs_of(analysis, mesh);
  std::vector<int> choice;
  for (std::size_t b = 0; b < 4; ++b) {
    const std::string wanted =
        b % 2 == 0 ? "columns over y, rows over x" : "rows over x, inner over y";
    const auto& all = costs.blocks[b].strategies;
    const auto found = std::ranges::find_if(all, [&](const Strategy& strategy) {
      return text_of(strategy, analysis.blocks.blocks[b], mesh) == wanted;
    });
    ASSERT_NE(found, all.end()) << wanted;
    choice.push_back(static_cast<int>(found - all.begin()));
  }
  double sent = 0;
  for (const Movement& m : movements_of(analysis, mesh, costs, choice))
    sent += traffic_of(mesh, m.transfer.kind, m.transfer.axes, m.transfer.size).value * m.times;
  const double closed = 4 * all_reduce_bytes(1024 * 1024 * 4 / 2.0, 2) +
                        3 * all_reduce_bytes(2048 * 1024 * 4 / 2.0, 2);
  EXPECT_EQ(sent, closed);
  const SearchResult result = search(analysis, mesh);
  ASSERT_TRUE(result.best);
  EXPECT_LE(total_traffic(*result.best), closed);
}

TEST(Search, AttentionLayersAreDividedByHeadsAndColumns) {
  // BERT of 2 layers, B = 8, S = 8, H = 128: an all-reduce of B*S*H*4 bytes behind attention and
  // MLP, forward and backward: 4 a layer, the first layer's norm included.
  const Analysis analysis = analyze(example("bert.hlo"), "bert.hlo");
  const SearchResult result = search(analysis, mesh_of({4}));
  ASSERT_TRUE(result.best);
  EXPECT_EQ(total_traffic(*result.best), 8 * all_reduce_bytes(8 * 8 * 128 * 4, 4));
  for (std::size_t b = 0; b < 8; ++b)
    EXPECT_EQ(text_of(result.best->strategies[b], analysis.blocks.blocks[b], result.best->mesh),
              b % 4 == 0   ? "heads over x"
              : b % 2 == 0 ? "columns over x"
                           : "inner over x");
}

TEST(Search, ExpertsAreDividedWithFourAllToAlls) {
  const Analysis analysis = analyze(example("moe.hlo"), "moe.hlo");
  const SearchResult result = search(analysis, mesh_of({8}, 1e9));
  ASSERT_TRUE(result.best);
  EXPECT_EQ(text_of(result.best->strategies[3], analysis.blocks.blocks[3], result.best->mesh),
            "batch over x");
  int count = 0;
  for (const Movement& m : result.best->movements) {
    if (m.transfer.kind != CollectiveKind::all_to_all) continue;
    ++count;
    // Groups 8, experts 8, capacity 8, width 64, of which a device has an eighth.
    EXPECT_EQ(m.transfer.size.value, 8.0 * 8 * 8 * 64 * 4 / 8);
  }
  EXPECT_EQ(count, 4);
}

TEST(Search, WeightsAreSharedOnlyWhereMemoryIsShort) {
  // Six layers by data parallelism, and a little less memory than that takes.
  std::string text = samples::mlp_step(6, 4096, 256);
  std::string aliases;
  for (int i = 0; i < 6; ++i) {
    const std::string n = std::to_string(i);
    aliases += (i > 0 ? ", {" : "{") + n + "}: (" + n + ", {}, may-alias)";
  }
  text.insert(text.find('\n'), ", input_output_alias={ " + aliases + " }");
  const Analysis analysis = analyze(text, "mlp");
  const Mesh mesh = mesh_of({4});
  const SearchResult free = search(analysis, mesh);
  ASSERT_TRUE(free.best);
  const auto shared = [](const SearchResult& result) {
    return std::ranges::count(result.best->strategies, Sharing::weights, &Strategy::sharing);
  };
  // The backward pass does not use the first layer's: one gather costs what the new weight's does.
  EXPECT_EQ(shared(free), 1);
  SearchOptions options;
  options.memory = free.best->peak * 0.97;
  const SearchResult tight = search(analysis, mesh, options);
  ASSERT_TRUE(tight.best);
  EXPECT_GT(shared(tight), 1);
  EXPECT_LE(tight.best->peak, *options.memory);
}

TEST(Search, FindsWhatTryingEveryCombinationFinds) {
  const Analysis analysis = analyze(samples::mlp_step(3, 256, 256), "mlp");
  for (const std::vector<int>& sizes : {std::vector<int>{4}, std::vector<int>{2, 2}}) {
    const Mesh mesh = mesh_of(sizes);
    const GraphCosts costs = costs_of(analysis, mesh);
    double best = 1e300;
    std::vector<int> choice(3, 0);
    for (;;) {
      best = std::min(best, plan_with(analysis, mesh, costs, choice).time().value);
      std::size_t b = 0;
      while (b < 3 && ++choice[b] == static_cast<int>(costs.blocks[b].strategies.size()))
        choice[b++] = 0;
      if (b == 3) break;
    }
    const SearchResult result = search(analysis, mesh);
    EXPECT_NEAR(result.best->time().value, best, 1e-12 * best);
    EXPECT_NEAR(result.best->bound.value, best, 1e-12 * best);
  }
}

TEST(Search, TheMovementsExplainTheCommunicationOfBlocksAndEdges) {
  const Analysis analysis = analyze(example("gpt.hlo"), "gpt.hlo");
  std::mt19937 random(5);
  for (const std::vector<int>& sizes : {std::vector<int>{8}, std::vector<int>{2, 4}}) {
    const Mesh mesh = mesh_of(sizes);
    const GraphCosts costs = costs_of(analysis, mesh);
    for (int i = 0; i < 20; ++i) {
      std::vector<int> choice;
      for (const BlockCosts& block : costs.blocks)
        choice.push_back(static_cast<int>(random() % block.strategies.size()));
      const ShardingPlan plan = plan_with(analysis, mesh, costs, choice);
      double sum = 0;
      for (const Movement& m : plan.movements)
        sum += time_of(mesh, m.transfer.kind, m.transfer.axes, m.transfer.size).value * m.times;
      // What several blocks want at one place is moved once; that is little of the whole.
      EXPECT_LE(sum, plan.communication.value * (1 + 1e-9));
      EXPECT_GE(sum, plan.communication.value * 0.7);
    }
  }
}

TEST(Search, LessMemoryNeverGivesAFasterPlanAndIsKept) {
  const Analysis analysis = analyze(samples::mlp_step(6, 1024, 512), "mlp");
  const Mesh mesh = mesh_of({4});
  const SearchResult free = search(analysis, mesh);
  ASSERT_TRUE(free.best);
  double before = free.best->time().value;
  for (const double part : {0.95, 0.85, 0.75}) {
    SearchOptions options;
    options.memory = free.best->peak * part;
    const SearchResult tight = search(analysis, mesh, options);
    if (!tight.best) continue;
    EXPECT_LE(tight.best->peak, *options.memory);
    EXPECT_GE(tight.best->time().value, before * (1 - 1e-9));
    EXPECT_LE(tight.best->bound.value, tight.best->time().value * (1 + 1e-9));
    before = std::max(before, free.best->time().value);
  }
  SearchOptions nothing;
  nothing.memory = Bytes(1000);
  const SearchResult none = search(analysis, mesh, nothing);
  EXPECT_FALSE(none.best);
  ASSERT_TRUE(none.why_not);
  EXPECT_GT(none.why_not->needed, Bytes(1000));
}

TEST(Search, UnderALimitTheBoundIsBelowTheBestOfAllThatFit) {
  const Analysis analysis = analyze(samples::mlp_step(4, 1024, 512), "mlp");
  const Mesh mesh = mesh_of({4});
  const GraphCosts costs = costs_of(analysis, mesh);
  std::vector<ShardingPlan> all;
  std::vector<int> choice(4, 0);
  for (std::size_t b = 0; b < 4;) {
    all.push_back(plan_with(analysis, mesh, costs, choice));
    for (b = 0; b < 4 && ++choice[b] == static_cast<int>(costs.blocks[b].strategies.size()); ++b)
      choice[b] = 0;
  }
  const Bytes most = search(analysis, mesh).best->peak;
  for (double part = 0.98; part > 0.6; part -= 0.06) {
    SearchOptions options;
    options.memory = most * part;
    const ShardingPlan* best = nullptr;
    for (const ShardingPlan& plan : all)
      if (plan.peak <= *options.memory && (best == nullptr || plan.time() < best->time()))
        best = &plan;
    const SearchResult found = search(analysis, mesh, options);
    if (!found.best) continue;
    ASSERT_NE(best, nullptr);
    EXPECT_LE(found.best->peak, *options.memory);
    EXPECT_GE(found.best->time().value, best->time().value * (1 - 1e-9));
    EXPECT_LE(found.best->bound.value, best->time().value * (1 + 1e-9));
  }
}

TEST(Search, AFasterLinkNeverMakesAPlanSlower) {
  const Analysis analysis = analyze(example("gpt.hlo"), "gpt.hlo");
  double before = 1e300;
  for (const double bandwidth : {1e8, 1e9, 1e10, 1e11}) {
    const SearchResult result = search(analysis, mesh_of({2, 4}, bandwidth));
    EXPECT_LE(result.best->time().value, before);
    before = result.best->time().value;
  }
}

TEST(Search, ThreadsDoNotChangeThePlan) {
  const Analysis analysis = analyze(example("moe.hlo"), "moe.hlo");
  SearchOptions many;
  many.threads = 4;
  const SearchResult one = search(analysis, mesh_of({2, 4}));
  const SearchResult four = search(analysis, mesh_of({2, 4}), many);
  EXPECT_EQ(one.best->strategies, four.best->strategies);
  EXPECT_EQ(one.best->time(), four.best->time());
}

}  // namespace
}  // namespace plait::graph
