#include "search/bound/uphill.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace plait {
namespace {

// min(10 - |x - 3|, 12 - |x + y - 8|, 14 - 5 |y - x|) has a ridge along y = x; its top is 10, at
// x = 3 with y near 5 to 3: 12 - |x + y - 8| >= 10 from y = 3 on.
TEST(Uphill, FollowsARidge) {
  Hill hill;
  hill.looks = 200;
  hill.enough = 100;
  hill.clamp = [](std::vector<double>& at) {
    for (double& x : at) x = std::max(0.0, x);
  };
  hill.look = [](const std::vector<double>& at, std::vector<double>& slope) {
    const double x = at[0];
    const double y = at[1];
    const double a = 10 - std::abs(x - 3);
    const double b = 12 - std::abs(x + y - 8);
    const double c = 14 - 5 * std::abs(y - x);
    const auto sign = [](double v) { return v > 0 ? 1.0 : -1.0; };
    if (a <= b && a <= c)
      slope = {-sign(x - 3), 0};
    else if (b <= c)
      slope = {-sign(x + y - 8), -sign(x + y - 8)};
    else
      slope = {5 * sign(y - x), -5 * sign(y - x)};
    return std::min({a, b, c});
  };
  std::vector<double> at{0, 0};
  EXPECT_NEAR(climb(hill, at), 10, 0.02);
  EXPECT_NEAR(at[0], 3, 0.02);
}

TEST(Uphill, StopsWhereItIsHighEnough) {
  int looks = 0;
  Hill hill;
  hill.looks = 1000;
  hill.enough = 5;
  hill.clamp = [](std::vector<double>&) {};
  hill.look = [&](const std::vector<double>& at, std::vector<double>& slope) {
    ++looks;
    slope = {1};
    return at[0];
  };
  std::vector<double> at{0};
  EXPECT_GE(climb(hill, at), 5);
  EXPECT_LT(looks, 10);
}

}  // namespace
}  // namespace plait
