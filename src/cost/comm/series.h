#pragma once

#include <utility>
#include <vector>

namespace plait {

// A measured value at x (samples of a micro-batch, bytes of a message).
struct Point {
  double x = 0;
  double value = 0;
};

// Measured values of one quantity over x, all else alike.
class Series {
 public:
  explicit Series(std::vector<Point> ascending) : points_(std::move(ascending)) {}

  bool empty() const { return points_.empty(); }
  std::size_t size() const { return points_.size(); }
  const Point& front() const { return points_.front(); }
  bool has(double x) const;

  // The points that the value at x is made from: x itself twice, or the two around it, or the last
  // two on its side.
  std::pair<Point, Point> around(double x) const;

  // Affine between the points; beyond them with the slope of the nearest two, which may be neither
  // negative nor steeper than proportional: values grow, and not faster than x. With one point the
  // value is proportional where x is larger and constant where it is smaller.
  double at(double x) const;

  // Growth with x by least squares.
  double slope() const;

 private:
  std::vector<Point> points_;
};

}  // namespace plait
