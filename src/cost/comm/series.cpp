#include "cost/comm/series.h"

#include <algorithm>

namespace plait {
namespace {

double bounded(double slope, const Point& end) {
  return end.x > 0 ? std::clamp(slope, 0.0, end.value / end.x) : std::max(slope, 0.0);
}

}  // namespace

bool Series::has(double x) const {
  return std::ranges::any_of(points_, [&](const Point& p) { return p.x == x; });
}

std::pair<Point, Point> Series::around(double x) const {
  if (points_.size() == 1) return {points_[0], points_[0]};
  auto above = std::ranges::find_if(points_, [&](const Point& p) { return p.x >= x; });
  if (above != points_.end() && above->x == x) return {*above, *above};
  if (above == points_.begin()) ++above;
  if (above == points_.end()) --above;
  return {*(above - 1), *above};
}

double Series::at(double x) const {
  const auto [low, high] = around(x);
  if (low.x == high.x) return x > low.x && low.x > 0 ? low.value * x / low.x : low.value;
  const double slope = (high.value - low.value) / (high.x - low.x);
  if (x < low.x) return low.value - bounded(slope, low) * (low.x - x);
  if (x > high.x) return high.value + bounded(slope, high) * (x - high.x);
  return low.value + slope * (x - low.x);
}

double Series::slope() const {
  const auto count = static_cast<double>(points_.size());
  double mean_x = 0;
  double mean_value = 0;
  for (const Point& p : points_) {
    mean_x += p.x / count;
    mean_value += p.value / count;
  }
  double above = 0;
  double below = 0;
  for (const Point& p : points_) {
    above += (p.x - mean_x) * (p.value - mean_value);
    below += (p.x - mean_x) * (p.x - mean_x);
  }
  return below > 0 ? above / below : 0;
}

}  // namespace plait
