#pragma once

#include <functional>
#include <vector>

namespace plait {

// A concave function of several variables and where it may be looked at.
struct Hill {
  // The value, and its slope: a direction in which no point that is higher lies behind.
  std::function<double(const std::vector<double>& at, std::vector<double>& slope)> look;
  // Back to where the function is defined.
  std::function<void(std::vector<double>& at)> clamp;
  double stride = 1;  // of the first step
  double enough = 0;  // no need to climb higher
  int looks = 0;      // at most
};

// Shor's r-algorithm: steps along the slope in a space that is shrunk along the difference of two
// slopes, so that ridges, where variables must rise together, are followed. Moves `at` to the best
// place that was looked at and returns the value there.
double climb(const Hill& hill, std::vector<double>& at);

}  // namespace plait
