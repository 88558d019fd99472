#include "graph/search/strategy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "graph/search/pieces.h"
#include "graph/search/sample_divisions.h"

namespace plait::graph {
namespace {

using samples::divided;
using samples::example;
using samples::mesh_of;
using samples::total_traffic;

TEST(Strategy, TheLargestAndItsPlaceAreGatheredAndReducedAgain) {
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
  const auto plan = divided(analysis, mesh_of({4}), "columns over x");
  ASSERT_TRUE(plan);
  const Bytes sent = plan->traffic()[static_cast<int>(CollectiveKind::all_gather)];
  EXPECT_EQ(sent, Bytes(2.0 * 3 * 64 * 4));
  EXPECT_EQ(total_traffic(*plan), sent.value);
}

std::string spec_of(const Analysis& analysis, const ShardingPlan& plan, int argument) {
  const int node = analysis.program.arguments[argument];
  return partition_spec(plan.placements[analysis.program.nodes[node].outputs[0]], 2,
                        plan.mesh.axes());
}

TEST(Strategy, DevicesWithCopiesOfAWeightShareItsUpdate) {
  // Data parallelism on 4 devices: the gradient (h^2 * 4 bytes) is scattered, the momentum is kept
  // in quarters, the new weight is gathered. That sends what an all-reduce does, and computes less.
  const Bytes weight(256 * 256 * 4);
  const Analysis analysis = analyze(samples::momentum_step(4096, 256), "momentum");
  const auto plan = divided(analysis, mesh_of({4}), "rows over x, update shared");
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->movements.size(), 2u);
  EXPECT_EQ(plan->movements[0].transfer, (Transfer{CollectiveKind::reduce_scatter, 1U, weight}));
  EXPECT_EQ(plan->movements[1].transfer, (Transfer{CollectiveKind::all_gather, 1U, weight}));
  EXPECT_EQ(spec_of(analysis, *plan, 0), "P()");
  EXPECT_EQ(spec_of(analysis, *plan, 1), "P('x')");  // the outermost dimension: parts lie together
  EXPECT_EQ(spec_of(analysis, *plan, 2), "P('x')");
  EXPECT_FALSE(divided(analysis, mesh_of({4}), "rows over x"));
}

TEST(Strategy, WeightsInPartsAreGatheredForEachPass) {
  // As above, but new weights stay in quarters: they are gathered before the forward pass and again
  // before the backward pass, and a device holds a quarter of them in between.
  const Bytes weight(256 * 256 * 4);
  const Analysis analysis = analyze(samples::momentum_step(64, 256), "momentum");
  const auto plan = divided(analysis, mesh_of({4}), "rows over x, weights shared");
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->movements.size(), 3u);
  int gathers = 0;
  for (const Movement& m : plan->movements) {
    gathers += m.transfer.kind == CollectiveKind::all_gather ? 1 : 0;
    EXPECT_EQ(m.transfer.size, weight);
  }
  EXPECT_EQ(gathers, 2);
  for (const int argument : {0, 1}) EXPECT_EQ(spec_of(analysis, *plan, argument), "P('x')");
  const auto copied = divided(analysis, mesh_of({4}), "rows over x, update shared");
  ASSERT_TRUE(copied);
  // Without the parts, the whole weight is held from beginning to end.
  EXPECT_LT(plan->peak, copied->peak);
}

// The step with a tag on every instruction, as the tracer writes them.
std::string tagged_momentum_step() {
  std::istringstream lines(samples::momentum_step(4096, 256));
  std::string out;
  int position = 0;
  for (std::string line; std::getline(lines, line); out += '\n') {
    out += line;
    if (line.find(" = ") == std::string::npos || line.find("ROOT") != std::string::npos) continue;
    out += ", frontend_attributes={plait=\"main:" + std::to_string(position++) + "\"}";
  }
  return out;
}

TEST(Strategy, WhatABlockDoesWithItsWeightsIsInItsMeasuredTime) {
  // What is timed gathers the weight for its uses, or the new weight at the end.
  const Analysis analysis = analyze(tagged_momentum_step(), "momentum");
  const Mesh mesh = mesh_of({4});
  const GraphCosts costs = costs_of(analysis, mesh);
  const Block& block = analysis.blocks.blocks[0];
  const int weight = analysis.program.nodes[analysis.program.arguments[0]].outputs[0];
  const int new_weight = analysis.program.results[0];
  for (std::size_t s = 0; s < costs.blocks[0].strategies.size(); ++s) {
    const Strategy& strategy = costs.blocks[0].strategies[s];
    if (strategy.sharing == Sharing::nothing) continue;
    const MeasuredBlocks measured{
        {{costs.blocks[0].signature, text_of(strategy, block, mesh)}, Seconds(1)}};
    CostOptions options;
    options.measured = &measured;
    const GraphCosts timed = costs_of(analysis, mesh, options);
    EXPECT_EQ(timed.blocks[0].compute[s], Seconds(1));
    EXPECT_EQ(timed.blocks[0].communication[s], Seconds(0));
    const Piece piece = piece_of(analysis, mesh, costs, 0, s);
    const bool in_parts = strategy.sharing == Sharing::weights;
    int gathers = 0;
    for (const PieceInput& input : piece.inputs)
      if (input.value == weight) {
        EXPECT_EQ(input.placement.axes() != 0, in_parts);
      }
    for (const PinnedUse& use : piece.pins.uses)
      if (use.value == weight && use.route.back() == Placement()) ++gathers;
    EXPECT_EQ(gathers, in_parts ? 2 : 0);  // y = x W, dx = ones W
    for (const PinnedValue& value : piece.pins.values)
      if (value.value == new_weight) {
        EXPECT_EQ(value.route.back().axes() != 0, in_parts);
      }
  }
}

TEST(Strategy, AnUpdateIsSharedAlongTheAxesWithCopiesOnly) {
  // Columns over y divide the weight, rows over x copy it: the momentum has both.
  const Analysis analysis = analyze(samples::momentum_step(4096, 256), "momentum");
  const auto plan =
      divided(analysis, mesh_of({2, 4}), "columns over y, rows over x, update shared");
  ASSERT_TRUE(plan);
  // What is sent besides sums the gradient of x over the columns.
  double sent = 0;
  for (const Movement& m : plan->movements)
    if ((m.transfer.axes & 2U) == 0)
      sent += traffic_of(plan->mesh, m.transfer.kind, m.transfer.axes, m.transfer.size).value;
  EXPECT_EQ(spec_of(analysis, *plan, 0), "P(None, 'y')");
  EXPECT_EQ(spec_of(analysis, *plan, 1), "P('x', 'y')");
  // Scattered and gathered along x: half of a quarter of the weight each.
  EXPECT_EQ(sent, 2.0 * 256 * 256 * 4 / 4 / 2);
}

TEST(Strategy, PositionsOfASequenceAreDividedAndWhatTheyLookAtGathered) {
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

}  // namespace
}  // namespace plait::graph
