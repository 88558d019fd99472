// Positions of images, divided.

#include <gtest/gtest.h>

#include <optional>

#include "graph/search/sample_meshes.h"
#include "graph/search/search.h"

namespace plait::graph {
namespace {

using samples::mesh_of;

// y = conv(x, w) of 3 x 3 positions, and the gradient of w.
std::string convolution_step() {
  return "HloModule conv\n\nENTRY main {\n  w = f32[3,3,8,16] parameter(0)\n"
         "  x = f32[4,32,16,8] parameter(1)\n  y = f32[4,32,16,16] convolution(x, w), "
         "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f\n"
         "  d = f32[4,32,16,16] multiply(y, y)\n"
         "  u = f32[3,3,8,16] convolution(x, d), window={size=32x16 pad=1_1x1_1}, "
         "dim_labels=f01b_i01o->01bf\n  v = f32[3,3,8,16] subtract(w, u)\n"
         "  ROOT r = (f32[3,3,8,16], f32[4,32,16,16]) tuple(v, y)\n}\n";
}

// What a device sends of a kind under the strategy that the words name; nothing where there is
// none.
std::optional<double> sent_under(const Analysis& analysis, const Mesh& mesh, CollectiveKind kind,
                                 const std::string& words) {
  const GraphCosts costs = costs_of(analysis, mesh);
  for (std::size_t s = 0; s < costs.blocks[0].strategies.size(); ++s)
    if (text_of(costs.blocks[0].strategies[s], analysis.blocks.blocks[0], mesh) == words)
      return plan_with(analysis, mesh, costs, {static_cast<int>(s)})
          .traffic()[static_cast<int>(kind)]
          .value;
  return std::nullopt;
}

TEST(Positions, PositionsOfAnImageAreDividedAndTheirBordersSent) {
  const Analysis analysis = analyze(convolution_step(), "conv");
  ASSERT_EQ(analysis.blocks.blocks.size(), 1u);
  // 8 devices have 4 rows of 16 x 8 features of 4 images each, and send one to either side, for the
  // product and again for the gradient.
  EXPECT_EQ(sent_under(analysis, mesh_of({8}), CollectiveKind::permute, "positions over x"),
            4.0 * 4 * 16 * 8 * 4);
  // Along both dimensions on 4 x 2: rows of 8 positions, then columns of 8 + 2 positions.
  EXPECT_EQ(sent_under(analysis, mesh_of({4, 2}), CollectiveKind::permute,
                       "positions over x, positions2 over y"),
            4.0 * 4 * (8 + 10) * 8 * 4);
  // XLA sums what images and positions leave one after the other: 2 (2-1)/2 + 2 (4-1)/4 weights.
  EXPECT_EQ(sent_under(analysis, mesh_of({2, 4}), CollectiveKind::all_reduce,
                       "rows over x, positions over y"),
            2.5 * 3 * 3 * 8 * 16 * 4);
  // Together with features XLA does not divide positions.
  EXPECT_FALSE(sent_under(analysis, mesh_of({2, 4}), CollectiveKind::permute,
                          "columns over x, positions over y"));
}

TEST(Positions, AKernelsGradientInGroupsIsNotSummedWhereDevicesHaveCopies) {
  // XLA adds the copies along y, too: with rows over x alone every device sums all rows.
  const std::string text =
      "HloModule conv\n\nENTRY main {\n  w = f32[3,1,6] parameter(0)\n"
      "  x = f32[8,16,6] parameter(1)\n  y = f32[8,16,6] convolution(x, w), window={size=3 "
      "pad=1_1}, dim_labels=b0f_0io->b0f, feature_group_count=6\n  d = f32[8,16,6] multiply(y, y)\n"
      "  u = f32[3,1,6] convolution(x, d), window={size=16 pad=1_1}, dim_labels=f0b_i0o->0bf, "
      "batch_group_count=6\n  v = f32[3,1,6] subtract(w, u)\n"
      "  ROOT r = (f32[3,1,6], f32[8,16,6]) tuple(v, y)\n}\n";
  const Analysis analysis = analyze(text, "conv");
  const Mesh mesh = mesh_of({4, 5});  // nothing divides by 5
  EXPECT_EQ(sent_under(analysis, mesh, CollectiveKind::all_reduce, "rows over x"), 0.0);
  // Of x and of d, three quarters of 8 * 16 * 6 floats each.
  EXPECT_EQ(sent_under(analysis, mesh, CollectiveKind::all_gather, "rows over x"),
            2 * 0.75 * 8 * 16 * 6 * 4);
  // Without copies the sum is one of XLA's that is right.
  EXPECT_EQ(sent_under(analysis, mesh_of({4}), CollectiveKind::all_reduce, "rows over x"),
            1.5 * 3 * 6 * 4);
}

TEST(Positions, ProductsThatLookThroughOneWindowGetTheBordersOnce) {
  // y = conv(x, w), z = conv(x, v) through the window of 3, and u through one of 5: 8 devices have
  // 4 rows of 8 features of 4 images each, and send 1 and 1 for y and z together, 2 and 2 for u.
  const std::string text =
      "HloModule conv\n\nENTRY main {\n  x = f32[4,32,8] parameter(0)\n"
      "  w = f32[3,8,8] parameter(1)\n  v = f32[3,8,8] parameter(2)\n"
      "  t = f32[5,8,8] parameter(3)\n"
      "  y = f32[4,32,8] convolution(x, w), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f\n"
      "  z = f32[4,32,8] convolution(x, v), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f\n"
      "  u = f32[4,32,8] convolution(x, t), window={size=5 pad=2_2}, dim_labels=b0f_0io->b0f\n"
      "  p = f32[4,32,8] multiply(y, z)\n  ROOT q = f32[4,32,8] multiply(p, u)\n}\n";
  const Analysis analysis = analyze(text, "conv");
  ASSERT_EQ(analysis.blocks.blocks.size(), 1u);
  EXPECT_EQ(sent_under(analysis, mesh_of({8}), CollectiveKind::permute, "positions over x"),
            4.0 * 8 * (2 + 4) * 4);
}

}  // namespace
}  // namespace plait::graph
