#include "runtime/profiler/profile_links.h"

#include <gtest/gtest.h>

namespace plait::runtime {
namespace {

TEST(LinkShapes, AreInsideANodeAndAcrossNodes) {
  const auto shapes = link_shapes(8, 4);
  ASSERT_EQ(shapes.size(), 4u);
  EXPECT_EQ(shapes[0], (LinkShape{1, 2, {0, 1}}));
  EXPECT_EQ(shapes[1], (LinkShape{1, 4, {0, 1, 2, 3}}));
  EXPECT_EQ(shapes[2], (LinkShape{2, 1, {0, 4}}));
  EXPECT_EQ(shapes[3], (LinkShape{2, 4, {0, 1, 2, 3, 4, 5, 6, 7}}));
}

TEST(LinkShapes, ThreeRanksOfANodeAreTwoAndAll) {
  const auto shapes = link_shapes(3, 3);
  ASSERT_EQ(shapes.size(), 2u);
  EXPECT_EQ(shapes[0].ranks.size(), 2u);
  EXPECT_EQ(shapes[1].ranks.size(), 3u);
}

TEST(LinkShapes, OneRankHasNone) { EXPECT_TRUE(link_shapes(1, 1).empty()); }

}  // namespace
}  // namespace plait::runtime
