#include "graph/search/uses.h"

#include <gtest/gtest.h>

namespace plait::graph {
namespace {

Placement along(int dim) {
  Placement placement;
  placement.dim[0] = static_cast<std::int8_t>(dim);
  return placement;
}

// y and its transpose t, and their product.
Analysis product_with_itself(const std::string& between = "") {
  const std::string given = between.empty() ? "y" : "b";
  return analyze(
      "HloModule m\n\nENTRY main {\n  x = f32[8,64] parameter(0)\n  w = f32[64,32] parameter(1)\n"
      "  y = f32[8,32] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n" +
          between + "  t = f32[32,8] transpose(" + given +
          "), dimensions={1,0}\n"
          "  ROOT z = f32[8,8] dot(y, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n",
      "m");
}

int value_of(const Analysis& analysis, std::string_view opcode) {
  for (const Node& node : analysis.program.nodes)
    if (node.is(opcode)) return node.outputs.front();
  return -1;
}

TEST(Uses, AnArrayAndItsTransposeInOnePlaceAreMovedAsOne) {
  const Analysis analysis = product_with_itself();
  const int t = value_of(analysis, "transpose");
  const int y = analysis.program.nodes[analysis.program.values[t].node].operands.front();
  const auto same = [&](int value) { return along(value == t ? 1 : 0); };
  EXPECT_EQ(untransposed(analysis, t, along(0), same), std::make_pair(y, along(1)));
  EXPECT_EQ(untransposed(analysis, t, Placement(), same), std::make_pair(y, Placement()));
  EXPECT_EQ(untransposed(analysis, y, along(1), same), std::make_pair(y, along(1)));
  const auto elsewhere = [&](int) { return along(0); };
  EXPECT_EQ(untransposed(analysis, t, along(1), elsewhere), std::make_pair(t, along(1)));
}

TEST(Uses, ATransposeBehindABarrierIsMovedByItself) {
  const Analysis analysis = product_with_itself("  b = f32[8,32] opt-barrier(y)\n");
  const int t = value_of(analysis, "transpose");
  const auto same = [&](int value) { return along(value == t ? 1 : 0); };
  EXPECT_EQ(untransposed(analysis, t, along(0), same), std::make_pair(t, along(0)));
}

}  // namespace
}  // namespace plait::graph
