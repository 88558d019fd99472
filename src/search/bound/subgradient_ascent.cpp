#include "search/bound/subgradient_ascent.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace plait {
namespace {

constexpr double kShrink = 0.5;
constexpr double kLonger = 1.6;  // after three steps in one direction
constexpr double kShorter = 0.7;
constexpr double kLeastStride = 2e-4;  // of the first one
// Looks in which so much of the way that is left, or of the height, must be gained.
constexpr int kPatience = 12;
constexpr double kLeastGain = 0.04;

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// A space of which some directions are shrunk, as the columns of a matrix.
class Shrunk {
 public:
  explicit Shrunk(std::size_t n) : n_(n), columns_(n * n, 0) {
    for (std::size_t i = 0; i < n; ++i) columns_[i * n + i] = 1;
  }
  std::vector<double> inwards(const std::vector<double>& v) const {
    std::vector<double> out(n_, 0);
    for (std::size_t i = 0; i < n_; ++i)
      for (std::size_t j = 0; j < n_; ++j) out[j] += columns_[i * n_ + j] * v[i];
    return out;
  }
  std::vector<double> outwards(const std::vector<double>& v) const {
    std::vector<double> out(n_, 0);
    for (std::size_t i = 0; i < n_; ++i)
      for (std::size_t j = 0; j < n_; ++j) out[i] += columns_[i * n_ + j] * v[j];
    return out;
  }
  void shrink(const std::vector<double>& change) {
    const std::vector<double> inner = inwards(change);
    const double size = std::sqrt(dot(inner, inner));
    if (size <= 1e-12) return;
    for (std::size_t i = 0; i < n_; ++i) {
      double along = 0;
      for (std::size_t j = 0; j < n_; ++j) along += columns_[i * n_ + j] * inner[j] / size;
      for (std::size_t j = 0; j < n_; ++j)
        columns_[i * n_ + j] += (kShrink - 1) * along * inner[j] / size;
    }
  }

 private:
  std::size_t n_;
  std::vector<double> columns_;
};

}  // namespace

double maximise(const ConcaveFunction& function, std::vector<double>& at) {
  const std::size_t n = at.size();
  std::vector<double> slope(n, 0);
  double value = function.evaluate(at, slope);
  if (!std::isfinite(value)) return value;
  Shrunk space(n);
  std::vector<double> best = at;
  double best_value = value;
  double stride = function.stride;
  double before_value = -HUGE_VAL;  // the best one, some evaluations ago
  int evaluations_before = 0;
  const auto goes_on = [&](int evaluations) {
    if (evaluations >= function.max_evaluations || best_value >= function.enough) return false;
    if (evaluations - evaluations_before < kPatience) return true;
    const double way = std::min(function.enough - best_value, std::abs(best_value));
    const bool pays = best_value - before_value >= kLeastGain * way;
    before_value = best_value;
    evaluations_before = evaluations;
    return pays;
  };
  for (int evaluations = 1; goes_on(evaluations);) {
    std::vector<double> inner = space.inwards(slope);
    const double length = std::sqrt(dot(inner, inner));
    if (length <= 1e-9 || stride <= kLeastStride * function.stride) break;
    for (double& x : inner) x /= length;
    const std::vector<double> direction = space.outwards(inner);
    const std::vector<double> before = slope;
    int steps = 0;
    for (double along = 1;
         along > 0 && evaluations < function.max_evaluations && best_value < function.enough;
         ++evaluations) {
      if (++steps % 3 == 0) stride *= kLonger;
      for (std::size_t i = 0; i < n; ++i) at[i] += stride * direction[i];
      function.clamp(at);
      value = function.evaluate(at, slope);
      if (value > best_value) {
        best = at;
        best_value = value;
      }
      if (!std::isfinite(value)) break;
      along = dot(slope, direction);
    }
    if (!std::isfinite(value)) break;
    if (steps == 1) stride *= kShorter;
    std::vector<double> change(n);
    for (std::size_t i = 0; i < n; ++i) change[i] = slope[i] - before[i];
    space.shrink(change);
  }
  at = std::move(best);
  return best_value;
}

}  // namespace plait
