#include "graph/search/products.h"

#include <algorithm>
#include <set>

#include "graph/hlo/attributes.h"
#include "graph/search/costs.h"

namespace plait::graph {
namespace {

OpKey input_gradient_of(OpKey key) {
  std::swap(key.inner, key.columns);
  return key;
}

OpKey weight_gradient_of(OpKey key) {
  const double rows = key.rows;
  key.rows = key.columns;
  key.columns = key.inner;
  key.inner = rows;
  return key;
}

// All of what was measured of products, as forward passes. What was measured as one stays.
Profile as_forward(const Profile& profile, const std::string& device_type) {
  Profile made;
  const auto add = [&](const OpKey& key, const std::optional<Seconds>& time) {
    if (time && *time > Seconds(0)) made.ops.try_emplace(key, OpSample{.forward = time});
  };
  const auto each = [&](const auto& visit) {
    for (const auto& [key, sample] : profile.ops)
      if (key.kind == OpKind::matmul && key.device_type == device_type && !sample.out_of_memory)
        visit(key, sample);
  };
  each([&](const OpKey& key, const OpSample& sample) { add(key, sample.forward); });
  each([&](const OpKey& key, const OpSample& sample) {
    add(input_gradient_of(key), sample.backward);
    add(weight_gradient_of(key), sample.weight_gradient);
  });
  return made;
}

double bytes_of(DType dtype) { return dtype == DType::fp32 ? 4 : dtype == DType::fp8 ? 1 : 2; }

}  // namespace

DType dtype_of(const std::string& type) {
  if (type == "bf16") return DType::bf16;
  if (type == "f16") return DType::fp16;
  return type.starts_with("f8") ? DType::fp8 : DType::fp32;
}

OpKey product_on_device(const Analysis& analysis, const Mesh& mesh, int node,
                        const std::vector<Placement>& operands) {
  const Program& program = analysis.program;
  const Instruction& it = *program.nodes[node].source;
  // The sizes of one side's dimensions on a device, multiplied: batch, contracted, the rest.
  struct Side {
    double batch = 1;
    double inner = 1;
    double free = 1;
  };
  const auto side = [&](std::size_t i, const std::string& name) {
    const auto batch = integers(it, name + "_batch_dims");
    const auto inner = integers(it, name + "_contracting_dims");
    const auto& dims = program.values[program.nodes[node].operands[i]].dims();
    Side made;
    for (int d = 0; d < static_cast<int>(dims.size()); ++d) {
      double size = static_cast<double>(dims[d]);
      for (const int a : operands[i].axes_of(d)) size /= mesh.sizes[a];
      double& into = std::ranges::find(batch, d) != batch.end()   ? made.batch
                     : std::ranges::find(inner, d) != inner.end() ? made.inner
                                                                  : made.free;
      into *= size;
    }
    return made;
  };
  const Side left = side(0, "lhs");
  const Side right = side(1, "rhs");
  OpKey key;
  key.dtype = dtype_of(program.values[program.nodes[node].operands.front()].shape->type);
  key.rows = left.free;
  key.inner = left.inner;
  key.columns = right.free;
  key.count = left.batch;
  return key;
}

std::vector<OpKey> products_of(const Analysis& analysis, const Mesh& mesh,
                               const GraphCosts& costs) {
  std::vector<OpKey> made;
  std::set<OpKey> known;
  // Forward passes first: they are measured with their gradients.
  for (const bool forward : {true, false})
    for (std::size_t b = 0; b < costs.blocks.size(); ++b)
      for (const int n : analysis.blocks.blocks[b].contractions) {
        if (!analysis.program.nodes[n].is("dot")) continue;
        if ((analysis.phases.of_node[n] == Phase::forward) != forward) continue;
        for (const ClassAxes& axes : costs.blocks[b].axes) {
          const OpKey key =
              product_on_device(analysis, mesh, n, place_node(analysis, mesh, n, axes).operands);
          if (key.rows < 1 || key.inner < 1 || key.columns < 1 || !known.insert(key).second)
            continue;
          known.insert(input_gradient_of(key));
          known.insert(weight_gradient_of(key));
          made.push_back(key);
        }
      }
  return made;
}

Seconds roofline(const DeviceType& device, const OpKey& p) {
  const Flops work(2 * p.rows * p.inner * p.columns * p.count);
  const Bytes moved(bytes_of(p.dtype) * p.count *
                    (p.rows * p.inner + p.inner * p.columns + p.rows * p.columns));
  return std::max(work / (device.peak_of(p.dtype) * device.efficiency.matmul),
                  moved / (device.memory_bandwidth * device.efficiency.memory));
}

MeasuredProducts::MeasuredProducts(const Profile& profile, const std::string& device_type)
    : products_(as_forward(profile, device_type)), shapes_(products_, device_type) {}

Seconds MeasuredProducts::time(const DeviceType& device, const OpKey& product) const {
  std::vector<ShapeRatio> ratios;
  for (const NearShapes::Neighbour& n : shapes_.near(product))
    if (const Seconds analytic = roofline(device, *n.key); analytic > Seconds(0))
      ratios.push_back({n.distance, *n.sample->forward / analytic});
  return roofline(device, product) * blended(ratios).value_or(1);
}

}  // namespace plait::graph
