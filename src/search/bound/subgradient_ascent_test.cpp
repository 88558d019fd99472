#include "search/bound/subgradient_ascent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace plait {
namespace {

// min(10 - |x - 3|, 12 - |x + y - 8|, 14 - 5 |y - x|) has a ridge along y = x; its top is 10, at
// x = 3 with y near 5 to 3: 12 - |x + y - 8| >= 10 from y = 3 on.
TEST(SubgradientAscent, FollowsARidge) {
  ConcaveFunction function;
  function.max_evaluations = 200;
  function.enough = 100;
  function.clamp = [](std::vector<double>& at) {
    for (double& x : at) x = std::max(0.0, x);
  };
  function.evaluate = [](const std::vector<double>& at, std::vector<double>& slope) {
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
  EXPECT_NEAR(maximise(function, at), 10, 0.02);
  EXPECT_NEAR(at[0], 3, 0.02);
}

TEST(SubgradientAscent, StopsWhereItIsHighEnough) {
  int evaluations = 0;
  ConcaveFunction function;
  function.max_evaluations = 1000;
  function.enough = 5;
  function.clamp = [](std::vector<double>&) {};
  function.evaluate = [&](const std::vector<double>& at, std::vector<double>& slope) {
    ++evaluations;
    slope = {1};
    return at[0];
  };
  std::vector<double> at{0};
  EXPECT_GE(maximise(function, at), 5);
  EXPECT_LT(evaluations, 10);
}

}  // namespace
}  // namespace plait
