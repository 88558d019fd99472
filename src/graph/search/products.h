#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cost/op/near_shapes.h"
#include "graph/search/strategy.h"

namespace plait::graph {

struct GraphCosts;

DType dtype_of(const std::string& type);  // of HLO

// The product that one device computes of a dot whose operands it has at these places. The device
// type is left empty.
OpKey product_on_device(const Analysis& analysis, const Mesh& mesh, int node,
                        const std::vector<Placement>& operands);

// The distinct products of all blocks under all strategies, without those that are measured as a
// gradient of another one.
std::vector<OpKey> products_of(const Analysis& analysis, const Mesh& mesh, const GraphCosts& costs);

// The roofline of a product: its arithmetic, or reading both sides and writing the result.
Seconds roofline(const DeviceType& device, const OpKey& product);

// Products that were measured on a device type. A product of a program is a measured one, or
// the gradient of one: of [r x i][i x c] that of the input is [r x c][c x i], that of the weight
// [c x r][r x i].
class MeasuredProducts {
 public:
  MeasuredProducts(const Profile& profile, const std::string& device_type);
  MeasuredProducts(const MeasuredProducts&) = delete;
  MeasuredProducts& operator=(const MeasuredProducts&) = delete;
  bool empty() const { return shapes_.empty(); }
  // What was measured of the shape; between shapes the roofline, times what those near it took
  // more.
  Seconds time(const DeviceType& device, const OpKey& product) const;

 private:
  Profile products_;  // all as forward passes
  NearShapes shapes_;
};

}  // namespace plait::graph
