// What devices with copies of a weight share.

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "graph/search/sample_meshes.h"
#include "graph/search/search.h"

namespace plait::graph {
namespace {

using samples::mesh_of;

// The only block of the momentum step divided as the words say; nothing where that is not offered.
std::optional<ShardingPlan> momentum_plan(const Analysis& analysis, const Mesh& mesh,
                                          const std::string& words) {
  const GraphCosts costs = costs_of(analysis, mesh);
  for (std::size_t s = 0; s < costs.blocks[0].strategies.size(); ++s)
    if (text_of(costs.blocks[0].strategies[s], analysis.blocks.blocks[0], mesh) == words)
      return plan_with(analysis, mesh, costs, {static_cast<int>(s)});
  return std::nullopt;
}

std::string spec_of(const Analysis& analysis, const ShardingPlan& plan, int argument) {
  const int node = analysis.program.arguments[argument];
  return partition_spec(plan.placements[analysis.program.nodes[node].outputs[0]], 2,
                        plan.mesh.axes());
}

TEST(Sharing, DevicesWithCopiesOfAWeightShareItsUpdate) {
  // Data parallelism on 4 devices: the gradient (h^2 * 4 bytes) is scattered, the momentum is kept
  // in quarters, the new weight is gathered. That sends what an all-reduce does, and computes less.
  const Bytes weight(256 * 256 * 4);
  const Analysis analysis = analyze(samples::momentum_step(4096, 256), "momentum");
  const auto plan = momentum_plan(analysis, mesh_of({4}), "rows over x, update shared");
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->movements.size(), 2u);
  EXPECT_EQ(plan->movements[0].transfer, (Transfer{CollectiveKind::reduce_scatter, 1U, weight}));
  EXPECT_EQ(plan->movements[1].transfer, (Transfer{CollectiveKind::all_gather, 1U, weight}));
  EXPECT_EQ(spec_of(analysis, *plan, 0), "P()");
  EXPECT_EQ(spec_of(analysis, *plan, 1), "P(None, 'x')");
  EXPECT_EQ(spec_of(analysis, *plan, 2), "P('x')");
  EXPECT_FALSE(momentum_plan(analysis, mesh_of({4}), "rows over x"));
}

TEST(Sharing, WeightsInPartsAreGatheredForEachPass) {
  // As above, but new weights stay in quarters: they are gathered before the forward pass and again
  // before the backward pass, and a device holds a quarter of them in between.
  const Bytes weight(256 * 256 * 4);
  const Analysis analysis = analyze(samples::momentum_step(64, 256), "momentum");
  const auto plan = momentum_plan(analysis, mesh_of({4}), "rows over x, weights shared");
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->movements.size(), 3u);
  int gathers = 0;
  for (const Movement& m : plan->movements) {
    gathers += m.transfer.kind == CollectiveKind::all_gather ? 1 : 0;
    EXPECT_EQ(m.transfer.size, weight);
  }
  EXPECT_EQ(gathers, 2);
  for (const int argument : {0, 1}) EXPECT_EQ(spec_of(analysis, *plan, argument), "P(None, 'x')");
  const auto copied = momentum_plan(analysis, mesh_of({4}), "rows over x, update shared");
  ASSERT_TRUE(copied);
  // Without the parts, the whole weight is held from beginning to end.
  EXPECT_LT(plan->peak, copied->peak);
}

TEST(Sharing, WeightsAreSharedOnlyWhereMemoryIsShort) {
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

TEST(Sharing, AMeasuredBlockStillGathersItsNewWeights) {
  // What was timed is the block alone; handing the new weight to the next step comes on top.
  const Analysis analysis = analyze(samples::momentum_step(4096, 256), "momentum");
  const Mesh mesh = mesh_of({4});
  const GraphCosts costs = costs_of(analysis, mesh);
  const MeasuredBlocks measured{
      {{costs.blocks[0].signature, "rows over x, update shared"}, Seconds(1)}};
  CostOptions options;
  options.measured = &measured;
  const GraphCosts timed = costs_of(analysis, mesh, options);
  for (std::size_t s = 0; s < timed.blocks[0].strategies.size(); ++s) {
    if (timed.blocks[0].strategies[s].sharing != Sharing::update) continue;
    EXPECT_EQ(timed.blocks[0].compute[s], Seconds(1));
    EXPECT_EQ(timed.blocks[0].communication[s],
              time_of(mesh, CollectiveKind::all_gather, 1U, Bytes(256 * 256 * 4)));
  }
}

TEST(Sharing, AnUpdateIsSharedAlongTheAxesWithCopiesOnly) {
  // Columns over y divide the weight, rows over x copy it: the momentum has both, y the major.
  const Analysis analysis = analyze(samples::momentum_step(4096, 256), "momentum");
  const auto plan =
      momentum_plan(analysis, mesh_of({2, 4}), "columns over y, rows over x, update shared");
  ASSERT_TRUE(plan);
  // What is sent besides sums the gradient of x over the columns.
  double sent = 0;
  for (const Movement& m : plan->movements)
    if ((m.transfer.axes & 2U) == 0)
      sent += traffic_of(plan->mesh, m.transfer.kind, m.transfer.axes, m.transfer.size).value;
  EXPECT_EQ(spec_of(analysis, *plan, 0), "P(None, 'y')");
  EXPECT_EQ(spec_of(analysis, *plan, 1), "P(None, ('y', 'x'))");
  // Scattered and gathered along x: half of a quarter of the weight each.
  EXPECT_EQ(sent, 2.0 * 256 * 256 * 4 / 4 / 2);
}

}  // namespace
}  // namespace plait::graph
