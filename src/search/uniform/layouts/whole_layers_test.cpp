#include "search/uniform/layouts/whole_layers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace plait {
namespace {

constexpr double kNear = 1e-3;  // of a bisection

// Three stages have three layers each, and the one with the head the tenth.
TEST(WholeLayers, AreNotDivided) {
  const double step = least_with_whole_layers({{4, 1.0, 1.5}}, 10, 0, HUGE_VAL);
  EXPECT_NEAR(step, 3, 3 * kNear);
  EXPECT_LE(step, 3);
}

// Eight layers: three each on the two fast stages, one each on the two slow ones.
TEST(WholeLayers, GoWhereTheyTakeLess) {
  const double step = least_with_whole_layers({{2, 1.0, 0}, {2, 2.5, 0}}, 8, 0, HUGE_VAL);
  EXPECT_NEAR(step, 3, 3 * kNear);
  EXPECT_LE(step, 3);
}

TEST(WholeLayers, NothingBelowWhatIsAskedForIsTheLimit) {
  EXPECT_EQ(least_with_whole_layers({{2, 1.0, 0}}, 8, 1, 3), 3);
  EXPECT_EQ(least_with_whole_layers({{2, 1.0, 0}}, 8, 4.5, 9), 4.5);
}

// Against all ways to divide the layers.
TEST(WholeLayers, NoDivisionTakesLess) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 300; ++round) {
    const auto draw = [&](double least, double most) {
      return least + (most - least) * static_cast<double>(random() % 1000) / 1000;
    };
    const StagesOfAKind a{1, draw(0.5, 2), draw(0, 3)};
    const StagesOfAKind b{2, draw(0.5, 2), draw(0, 3)};
    const int layers = 3 + static_cast<int>(random() % 8);
    double best = HUGE_VAL;
    for (int x = 0; x <= layers; ++x)
      for (int y = 0; x + y <= layers; ++y)
        for (int head = 0; head < 3; ++head) {
          const int z = layers - x - y;
          best = std::min(best, std::max({x * a.layer + (head == 0 ? a.head : 0),
                                          y * b.layer + (head == 1 ? b.head : 0),
                                          z * b.layer + (head == 2 ? b.head : 0)}));
        }
    const double bound = least_with_whole_layers({a, b}, layers, 0, HUGE_VAL);
    EXPECT_LE(bound, best * (1 + 1e-9)) << round;
  }
}

}  // namespace
}  // namespace plait
