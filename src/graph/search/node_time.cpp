// How long one op takes on one device: the roofline of its arithmetic and its memory traffic.

#include <algorithm>

#include "graph/block/numbering.h"
#include "graph/hlo/attributes.h"
#include "graph/search/costs.h"

namespace plait::graph {
namespace {

DType dtype_of(const std::string& type) {
  if (type == "bf16") return DType::bf16;
  if (type == "f16") return DType::fp16;
  return type.starts_with("f8") ? DType::fp8 : DType::fp32;
}

double product_of(const std::vector<std::int64_t>& dims) {
  double product = 1;
  for (const std::int64_t d : dims) product *= static_cast<double>(d);
  return product;
}

Flops flops_of(const Analysis& analysis, int n) {
  const Program& program = analysis.program;
  const Node& node = program.nodes[n];
  if (node.is("dot")) {
    double product = 2;
    for (const Factor& factor : analysis.rules[n].factors)
      product *= static_cast<double>(factor.size);
    return Flops(product);
  }
  // Every result of a convolution sums over the kernel of one output feature.
  const auto& kernel = program.values[node.operands[1]].dims();
  const ConvolutionDims dims = convolution_dims(*node.source);
  const double features =
      dims.valid ? static_cast<double>(std::max<std::int64_t>(kernel[dims.rhs_output], 1)) : 1;
  const double results = product_of(program.values[node.outputs[0]].dims());
  return Flops(2 * results * product_of(kernel) / features);
}

}  // namespace

Seconds node_time(const Analysis& analysis, const DeviceType& device, int n) {
  const Program& program = analysis.program;
  const Node& node = program.nodes[n];
  if (node.kind != NodeKind::op || is_view(program, node) || node.is("constant") ||
      node.is("broadcast") || node.is("iota") || node.is("reshape") || node.is("bitcast"))
    return {};
  Bytes moved;
  for (const int value : node.outputs) moved += size_of(*program.values[value].shape);
  const BytesPerSecond bandwidth = device.memory_bandwidth * device.efficiency.memory;
  if (!node.is("dot") && !node.is("convolution")) return moved / bandwidth;
  for (const int value : node.operands) moved += size_of(*program.values[value].shape);
  const DType dtype = dtype_of(program.values[node.operands.front()].shape->type);
  const FlopsPerSecond rate = device.peak_of(dtype) * device.efficiency.matmul;
  return std::max(flops_of(analysis, n) / rate, moved / bandwidth);
}

}  // namespace plait::graph
