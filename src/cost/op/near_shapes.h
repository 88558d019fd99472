#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "profile/profile.h"

namespace plait {

// The measured ops of one device type, by how near their shapes are to another.
class NearShapes {
 public:
  NearShapes(const Profile& profile, const std::string& device_type);
  bool empty() const { return points_.empty(); }

  struct Neighbour {
    const OpKey* key = nullptr;
    const OpSample* sample = nullptr;
    double distance = 0;  // in powers of two
  };
  // The 8 nearest, the nearest first, none further than three doublings. Only shapes of the same
  // kind, number format and alignment, with or without a causal mask, are near each other.
  std::vector<Neighbour> near(const OpKey& key) const;

 private:
  using Coordinates = std::array<double, 4>;  // powers of two
  struct Point {
    const OpKey* key = nullptr;
    const OpSample* sample = nullptr;
    Coordinates at{};
  };
  static Coordinates coordinates(const OpKey& key);

  std::vector<Point> points_;
};

// What was measured of a neighbour over what the analytic model says of it.
struct ShapeRatio {
  double distance = 0;
  double ratio = 1;
};

// What to multiply the analytic time of a shape by:
//   the shape itself was measured   its ratio
//   shapes near it were             exp(sum w log(ratio) / (w0 + sum w))
// with w = 1 / (1/64 + d^2), d the distance in powers of two, w0 = 1/9: three doublings away a
// measurement counts as much as the analytic model. Nothing without neighbours.
std::optional<double> blended(const std::vector<ShapeRatio>& neighbours);

}  // namespace plait
