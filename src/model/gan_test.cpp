#include "model/gan.h"

#include <gtest/gtest.h>

namespace plait {
namespace {

TEST(Transgan, LaterStagesHandOnSixteenTimesAsMuch) {
  // 9 x 9 x 1024 = 82,944 elements at first, 288 x 288 x 16 = 1,327,104 at the end.
  const Model model = build_transgan({});
  EXPECT_EQ(model.unit_count(), 1 + 12 + 5 + 12 + 1);
  EXPECT_EQ(model.unit(1).name, "block_9x9");
  EXPECT_EQ(model.unit(1).output, 82'944);
  EXPECT_EQ(model.unit(29).name, "block_288x288");
  EXPECT_EQ(model.unit(29).output, 1'327'104);
}

TEST(Transgan, FirstBlocksAreHeavyInParametersAndLastInActivations) {
  const Model model = build_transgan({});
  // 12 h^2 and the biases and norms of a block, and 17^2 relative positions of 4 heads.
  const double first = 12.0 * 1024 * 1024 + (1 + 4 + 1 + 4) * 1024 + 17 * 17 * 4;
  EXPECT_EQ(model.unit(1).parameters(), first);
  const double last = 12.0 * 16 * 16 + (1 + 4 + 1 + 4) * 16 + 35 * 35 * 4;
  EXPECT_EQ(model.unit(29).parameters(), last);
}

TEST(Transgan, AttentionStaysInItsWindow) {
  const Model model = build_transgan({});
  for (const Op& op : model.unit(29).ops) {
    if (op.kind != OpKind::attention) continue;
    EXPECT_EQ(op.rows, 18 * 18);
    EXPECT_EQ(op.columns, 18 * 18);
    EXPECT_EQ(op.count, 4 * 16 * 16);  // heads x windows
  }
}

TEST(Transgan, FaultsAreNamed) {
  EXPECT_EQ(fault_of(TransganConfig{}), "");
  EXPECT_EQ(fault_of(TransganConfig{.heads = 32}),
            "heads (32) must divide the channels of every stage (16 at 288x288)");
  EXPECT_EQ(fault_of(TransganConfig{.window = 10}),
            "window (10) must divide every larger stage (18x18)");
}

}  // namespace
}  // namespace plait
