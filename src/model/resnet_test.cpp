#include "model/resnet.h"

#include <gtest/gtest.h>

namespace plait {
namespace {

TEST(WideResnet, HasTheSizesThatAcesoReports) {
  // Aceso's artifact counts 0.495, 1.97, 4.00, 6.73 and 12.6 billion.
  const auto billions = [](std::vector<int> blocks, int channels, int width) {
    return build_wide_resnet({.blocks = blocks, .channels = channels, .width = width})
               .parameters() /
           1e9;
  };
  EXPECT_NEAR(billions({3, 4, 6, 3}, 224, 2), 0.495, 0.0005);
  EXPECT_NEAR(billions({3, 4, 6, 3}, 448, 2), 1.97, 0.005);
  EXPECT_NEAR(billions({3, 4, 6, 3}, 640, 2), 4.00, 0.005);
  EXPECT_NEAR(billions({3, 4, 6, 3}, 320, 16), 6.73, 0.005);
  EXPECT_NEAR(billions({3, 4, 23, 3}, 320, 16), 12.6, 0.05);
}

TEST(WideResnet, UnitsAreStemBlocksAndHead) {
  const Model model = build_wide_resnet({.channels = 320});
  EXPECT_EQ(model.unit_count(), 1 + 16 + 1);
  EXPECT_EQ(model.unit(0).output, 56 * 56 * 320);
  EXPECT_EQ(model.unit(1).name, "stage1_first");
  EXPECT_EQ(model.unit(1).output, 56 * 56 * 1280);
  EXPECT_EQ(model.unit(16).output, 7 * 7 * 10240);
  EXPECT_EQ(model.unit(17).name, "head");
}

TEST(WideResnet, StemWorksAsMuchAsItsConvolution) {
  // 112 x 112 positions, 7 x 7 x 3 inputs, 64 outputs.
  const Model model = build_wide_resnet({.channels = 64});
  EXPECT_EQ(model.unit(0).forward().value, 2.0 * 112 * 112 * 147 * 64);
}

TEST(WideResnet, FaultsAreNamed) {
  EXPECT_EQ(fault_of(WideResnetConfig{}), "");
  EXPECT_EQ(fault_of(WideResnetConfig{.image = 225}),
            "image must be a multiple of 32 and at most 16384");
  EXPECT_EQ(fault_of(WideResnetConfig{.blocks = {3, 0}}),
            "every stage must have from 1 to 10000 blocks");
}

}  // namespace
}  // namespace plait
