#include "cost/op/near_shapes.h"

#include <algorithm>
#include <cmath>

#include "cost/op/op_time.h"

namespace plait {
namespace {

// Set, not fitted: inverse square distances (Shepard's interpolation) with a range. A measurement
// within an eighth of a doubling counts as if it were the shape itself (1/64 = (1/8)^2), and three
// doublings away as much as the analytic model (1/9 = (1/3)^2); docs/cost-model.md#shapes.
constexpr std::size_t kNeighbours = 8;
constexpr double kFar = 3;               // powers of two
constexpr double kSmoothing = 1.0 / 64;  // of the squared distance
constexpr double kHeadWeight = 3;        // a head twice as wide is another kernel

bool has_same_kernel(const OpKey& a, const OpKey& b) {
  return a.kind == b.kind && a.function == b.function && a.dtype == b.dtype &&
         a.causal == b.causal && a.window == b.window && a.stride == b.stride;
}

double alignment_of(const OpKey& key) {
  return key.kind == OpKind::matmul ? std::max(misalignment(key.inner), misalignment(key.columns))
                                    : 0;
}

}  // namespace

NearShapes::NearShapes(const Profile& profile, const std::string& device_type) {
  for (const auto& [key, sample] : profile.ops)
    if (key.device_type == device_type && !sample.out_of_memory)
      points_.push_back({&key, &sample, coordinates(key)});
}

NearShapes::Coordinates NearShapes::coordinates(const OpKey& key) {
  const auto power = [](double size) { return size > 0 ? std::log2(size) : 0; };
  const double head = key.kind == OpKind::attention ? kHeadWeight : 1;
  return {power(key.rows), head * power(key.inner), power(key.columns), power(key.count)};
}

std::vector<NearShapes::Neighbour> NearShapes::near(const OpKey& key) const {
  const Coordinates at = coordinates(key);
  const double alignment = alignment_of(key);
  std::vector<Neighbour> found;
  for (const Point& point : points_) {
    if (!has_same_kernel(*point.key, key) || alignment_of(*point.key) != alignment) continue;
    double squares = 0;
    for (std::size_t i = 0; i < at.size(); ++i)
      squares += (at[i] - point.at[i]) * (at[i] - point.at[i]);
    if (squares <= kFar * kFar) found.push_back({point.key, point.sample, std::sqrt(squares)});
  }
  const auto nearest = found.begin() + static_cast<long>(std::min(kNeighbours, found.size()));
  std::ranges::partial_sort(found, nearest, {}, &Neighbour::distance);
  found.erase(nearest, found.end());
  return found;
}

std::optional<double> blended(const std::vector<ShapeRatio>& neighbours) {
  if (neighbours.empty()) return std::nullopt;
  double sum = 0;
  double weights = 1 / (kFar * kFar);
  for (const ShapeRatio& n : neighbours) {
    if (n.distance == 0) return n.ratio;
    const double weight = 1 / (kSmoothing + n.distance * n.distance);
    sum += weight * std::log(n.ratio);
    weights += weight;
  }
  return std::exp(sum / weights);
}

}  // namespace plait
