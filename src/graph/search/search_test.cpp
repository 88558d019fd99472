#include "graph/search/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <sstream>

#include "base/error.h"
#include "graph/search/pins.h"
#include "graph/search/sample_meshes.h"
#include "source_tree.h"

namespace plait::graph {
namespace {

using samples::mesh_of;

std::string example(const std::string& name) {
  std::ifstream in(source_dir() + "/examples/graph/hlo/" + name);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

double total_traffic(const ShardingPlan& plan) {
  double sum = 0;
  for (const Bytes bytes : plan.traffic()) sum += bytes.value;
  return sum;
}

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

TEST(Search, TheLargestAndItsPlaceAreGatheredAndReducedAgain) {
  // y = x W with 4 columns groups: each device finds (value, place) of its columns for 64 rows, and
  // gets those of the other three: 3 * 64 * 4 bytes of each.
  const std::string text =
      "HloModule m\n\nlarger {\n  a = f32[] parameter(0)\n  i = s32[] parameter(1)\n"
      "  b = f32[] parameter(2)\n  j = s32[] parameter(3)\n  c = pred[] compare(a, b), "
      "direction=GT\n"
      "  v = f32[] select(c, a, b)\n  k = s32[] select(c, i, j)\n"
      "  ROOT r = (f32[], s32[]) tuple(v, k)\n}\n\nENTRY main {\n  x = f32[64,32] parameter(0)\n"
      "  w = f32[32,128] parameter(1)\n  y = f32[64,128] dot(x, w), lhs_contracting_dims={1}, "
      "rhs_contracting_dims={0}\n  n = s32[64,128] iota(), iota_dimension=1\n"
      "  least = f32[] constant(-inf)\n  zero = s32[] constant(0)\n"
      "  ROOT r = (f32[64], s32[64]) reduce(y, n, least, zero), dimensions={1}, "
      "to_apply=larger\n}\n";
  const Analysis analysis = analyze(text, "m");
  const Mesh mesh = mesh_of({4});
  const GraphCosts costs = costs_of(analysis, mesh);
  for (std::size_t s = 0; s < costs.blocks[0].strategies.size(); ++s) {
    if (text_of(costs.blocks[0].strategies[s], analysis.blocks.blocks[0], mesh) != "columns over x")
      continue;
    const ShardingPlan plan = plan_with(analysis, mesh, costs, {static_cast<int>(s)});
    const Bytes sent = plan.traffic()[static_cast<int>(CollectiveKind::all_gather)];
    EXPECT_EQ(sent, Bytes(2.0 * 3 * 64 * 4));
    EXPECT_EQ(total_traffic(plan), sent.value);
    return;
  }
  FAIL() << "columns are not offered";
}

TEST(Search, PositionsOfASequenceAreDividedAndWhatTheyLookAtGathered) {
  // Attention of 8 sequences of 32 positions, 64 features: a device has 4 positions of each and
  // gathers keys and values (7/8 of 8 * 32 * 64 floats each); their gradients are scattered.
  const Analysis analysis = analyze(example("gpt.hlo"), "gpt.hlo");
  const Mesh mesh = mesh_of({8});
  const GraphCosts costs = costs_of(analysis, mesh);
  std::vector<int> choice;
  for (std::size_t b = 0; b < costs.blocks.size(); ++b) {
    const auto& all = costs.blocks[b].strategies;
    const auto found = std::ranges::find_if(all, [&](const Strategy& s) {
      return text_of(s, analysis.blocks.blocks[b], mesh) == "positions over x";
    });
    ASSERT_NE(found, all.end());
    choice.push_back(static_cast<int>(found - all.begin()));
  }
  const ShardingPlan plan = plan_with(analysis, mesh, costs, choice);
  const double array = 8.0 * 32 * 64 * 4;
  // Two layers.
  EXPECT_EQ(plan.traffic()[static_cast<int>(CollectiveKind::all_gather)].value,
            2 * 2 * array * 7 / 8);
  EXPECT_EQ(plan.traffic()[static_cast<int>(CollectiveKind::reduce_scatter)].value,
            2 * 2 * array * 7 / 8);
  EXPECT_EQ(plan.traffic()[static_cast<int>(CollectiveKind::all_to_all)], Bytes(0));
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

TEST(Mesh, SizesMustMultiplyToTheDevices) {
  const Cluster cluster = samples::cluster_of(8);
  try {
    make_mesh(cluster, {3, 3}, "--mesh");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "--mesh: a mesh of 3x3 needs 9 devices, and the cluster has 8");
  }
  EXPECT_THROW(parse_mesh("2x", "--mesh"), InputError);
  EXPECT_THROW(parse_mesh("2x2x2x2", "--mesh"), InputError);
  EXPECT_EQ(parse_mesh("2x4", "--mesh"), (std::vector<int>{2, 4}));
  // 8, 2x4, 4x2, 2x2x2 with one, two and three axes.
  EXPECT_EQ(all_meshes(8, 3).size(), 4u);
}

Placement placed(const std::vector<std::pair<int, int>>& axis_dim) {
  Placement made;
  std::array<int, 8> next{};
  for (const auto& [axis, dim] : axis_dim) {
    made.dim[axis] = static_cast<std::int8_t>(dim);
    made.rank[axis] = static_cast<std::int8_t>(next[dim]++);
  }
  return made;
}

// The strings of the study of GSPMD's grammar: mesh 2 x 4.
TEST(Placement, IsWrittenAsGspmdAndAsPartitionSpec) {
  const Mesh mesh = mesh_of({2, 4});
  EXPECT_EQ(gspmd_sharding(mesh, placed({{1, 0}}), 2),
            "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}");
  EXPECT_EQ(gspmd_sharding(mesh, placed({{0, 0}, {1, 1}}), 2), "{devices=[2,4]<=[8]}");
  EXPECT_EQ(gspmd_sharding(mesh, placed({{0, 1}}), 2),
            "{devices=[1,2,4]<=[8] last_tile_dim_replicate}");
  EXPECT_EQ(gspmd_sharding(mesh, Placement(), 2), "{replicated}");
  EXPECT_EQ(gspmd_sharding(mesh_of({2}), placed({{0, 0}}), 2), "{devices=[2,1]<=[2]}");
  EXPECT_EQ(partition_spec(placed({{1, 1}}), 2, 2), "P(None, 'y')");
  EXPECT_EQ(partition_spec(placed({{0, 0}, {1, 0}}), 2, 2), "P(('x', 'y'))");
}

TEST(Placement, ChangesNeedTheFewestCollectives) {
  const Mesh mesh = mesh_of({2, 4});
  const Bytes size(1024);
  EXPECT_TRUE(transfers(mesh, size, Placement(), placed({{0, 0}})).empty());  // a slice
  // Gathering y: 512 bytes of each half are whole afterwards.
  EXPECT_EQ(transfers(mesh, size, placed({{0, 0}, {1, 1}}), placed({{0, 0}})),
            (std::vector<Transfer>{{CollectiveKind::all_gather, 2U, Bytes(512)}}));
  EXPECT_EQ(transfers(mesh, size, placed({{1, 0}}), placed({{1, 1}})),
            (std::vector<Transfer>{{CollectiveKind::all_to_all, 2U, Bytes(256)}}));
}

}  // namespace
}  // namespace plait::graph
