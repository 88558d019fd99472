// How long one op takes on one device: the roofline of its arithmetic and its memory traffic.

#include <algorithm>

#include "graph/block/numbering.h"
#include "graph/hlo/attributes.h"
#include "graph/search/costs.h"
#include "graph/search/products.h"

namespace plait::graph {
namespace {

double product_of(const std::vector<std::int64_t>& dims) {
  double product = 1;
  for (const std::int64_t d : dims) product *= static_cast<double>(d);
  return product;
}

// Every result of a convolution sums over the kernel of one output feature.
Flops convolution_work(const Program& program, const Node& node) {
  const auto& kernel = program.values[node.operands[1]].dims();
  const ConvolutionDims dims = convolution_dims(*node.source);
  const double features =
      dims.valid ? static_cast<double>(std::max<std::int64_t>(kernel[dims.rhs_output], 1)) : 1;
  const double results = product_of(program.values[node.outputs[0]].dims());
  return Flops(2 * results * product_of(kernel) / features);
}

}  // namespace

Seconds node_time(const Analysis& analysis, const Mesh& mesh, int n, const NodePlacement& at,
                  const MeasuredProducts* measured) {
  const Program& program = analysis.program;
  const Node& node = program.nodes[n];
  if (node.kind != NodeKind::op || is_view(program, node) || node.is("constant") ||
      node.is("broadcast") || node.is("iota") || node.is("reshape") || node.is("bitcast"))
    return {};
  const DeviceType& device = mesh.device;
  if (node.is("dot")) {
    OpKey product = product_on_device(analysis, mesh, n, at.operands);
    if (measured == nullptr) return roofline(device, product);
    product.device_type = device.name;
    return measured->time(device, product);
  }
  Bytes moved;
  for (const int output : node.outputs) moved += size_of(*program.values[output].shape) * at.share;
  const BytesPerSecond bandwidth = device.memory_bandwidth * device.efficiency.memory;
  if (!node.is("convolution")) return moved / bandwidth;
  for (std::size_t i = 0; i < node.operands.size(); ++i)
    moved += size_of(*program.values[node.operands[i]].shape) / mesh.size_of(at.operands[i].axes());
  const DType dtype = dtype_of(program.values[node.operands.front()].shape->type);
  const FlopsPerSecond rate = device.peak_of(dtype) * device.efficiency.matmul;
  return std::max(convolution_work(program, node) * at.share / rate, moved / bandwidth);
}

}  // namespace plait::graph
