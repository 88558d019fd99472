#pragma once

#include <functional>
#include <vector>

namespace plait {

// A concave function of several variables and where it may be evaluated.
struct ConcaveFunction {
  // The value, and a supergradient: every better point lies in its half-space.
  std::function<double(const std::vector<double>& at, std::vector<double>& slope)> evaluate;
  // Moves a point back to where the function is defined.
  std::function<void(std::vector<double>& at)> clamp;
  double stride = 1;        // of the first step
  double enough = 0;        // no higher value is needed
  int max_evaluations = 0;  // at most
};

// Shor's r-algorithm: steps along the supergradient in a space that is shrunk along the difference
// of two of them, so that ridges, where variables must rise together, are followed. Moves `at` to
// the best point that was evaluated and returns the value there.
double maximise(const ConcaveFunction& function, std::vector<double>& at);

}  // namespace plait
