#include "cost/comm/series.h"

#include <gtest/gtest.h>

namespace plait {
namespace {

TEST(Series, IsAffineBetweenPoints) {
  const Series series({{1, 10}, {3, 14}, {4, 20}});
  EXPECT_DOUBLE_EQ(series.at(3), 14);
  EXPECT_DOUBLE_EQ(series.at(2), 12);
  EXPECT_DOUBLE_EQ(series.at(3.5), 17);
}

TEST(Series, GoesOnWithTheSlopeOfTheLastTwo) {
  // 10 + 2 (x - 1); the fixed part of 8 is not multiplied.
  const Series series({{1, 10}, {2, 12}});
  EXPECT_DOUBLE_EQ(series.at(8), 24);
}

TEST(Series, NeverFallsNorGrowsFasterThanX) {
  const Series falling({{1, 10}, {2, 8}});
  EXPECT_DOUBLE_EQ(falling.at(8), 8);
  // A slope of 20 would be steeper than proportional to (2, 30): 15 each.
  const Series steep({{1, 10}, {2, 30}});
  EXPECT_DOUBLE_EQ(steep.at(4), 60);
}

TEST(Series, OnePointIsProportionalAboveAndConstantBelow) {
  const Series series({{4, 8}});
  EXPECT_DOUBLE_EQ(series.at(8), 16);
  EXPECT_DOUBLE_EQ(series.at(1), 8);
}

TEST(Series, SaysWhichPointsItUsed) {
  const Series series({{1, 10}, {2, 12}, {8, 30}});
  EXPECT_EQ(series.around(2).first.x, 2);
  EXPECT_EQ(series.around(2).second.x, 2);
  EXPECT_EQ(series.around(4).first.x, 2);
  EXPECT_EQ(series.around(4).second.x, 8);
  EXPECT_EQ(series.around(16).first.x, 2);
  EXPECT_EQ(series.around(0.5).second.x, 2);
}

TEST(Series, SlopeIsThatOfLeastSquares) {
  EXPECT_DOUBLE_EQ(Series({{1, 1}, {2, 3}, {3, 5}}).slope(), 2);
  EXPECT_DOUBLE_EQ(Series({{1, 1}}).slope(), 0);
}

}  // namespace
}  // namespace plait
