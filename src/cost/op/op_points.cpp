#include "cost/op/op_points.h"

#include <algorithm>
#include <cmath>

#include "cost/framework/framework.h"
#include "cost/op/eager.h"

namespace plait {
namespace {

bool is_kernel(const Kernels& kernels, const Op& op) {
  if (op.kind == OpKind::attention)
    return kernels.job().attention == AttentionKernel::flash && !kernels.writes_scores(op);
  return op.kind == OpKind::matmul || op.kind == OpKind::convolution;
}

// Elements that an element-wise op writes: it reads one for each of them, or two to add.
double results_of(const Op& op) {
  if (op.function == Function::add) return std::floor(op.moved / 3);
  if (op.function == Function::rotary || op.function == Function::other)
    return std::floor(op.moved / 2);
  return eager_elements(op);
}

using Pass = std::optional<Seconds> OpSample::*;
struct PassPair {
  Pass measured;
  Seconds OpTime::*analytic;
};
constexpr std::array kPasses{PassPair{&OpSample::forward, &OpTime::forward},
                             PassPair{&OpSample::backward, &OpTime::backward},
                             PassPair{&OpSample::weight_gradient, &OpTime::weight_gradient}};

}  // namespace

Window window_of(const Op& op) {
  if (op.kind != OpKind::convolution) return {0, 0};
  const double input = op.moved - op.rows * op.columns;
  for (const int side : {1, 3, 5, 7, 9, 11}) {
    const double channels = op.inner / (side * side);
    if (channels != std::floor(channels)) continue;
    const double stride = std::sqrt(input / channels / op.rows);
    if (stride >= 1 && stride == std::floor(stride)) return {side, static_cast<int>(stride)};
  }
  return {1, 1};
}

OpKey op_key(const Job& job, const Model& model, const Op& op, const Sharding& s) {
  OpKey key;
  key.kind = op.kind;
  if (op.kind != OpKind::attention) key.function = op.function;
  const bool narrow = op.kind == OpKind::attention || op.split == Split::vocabulary;
  key.dtype = narrow ? attention_dtype(job.precision) : compute_dtype(job.precision);
  const double share = activation_share(op.split, s);
  switch (op.kind) {
    case OpKind::matmul: {
      const Product g = sharded_product(job, op, s);
      key.rows = g.m;
      key.inner = g.k;
      key.columns = g.n;
      key.count = g.count;
      break;
    }
    case OpKind::convolution: {
      const Product g = sharded_product(job, op, s);
      const Window window = window_of(op);
      key.rows = op.rows;
      key.count = g.m / op.rows;
      key.inner = g.k;
      key.columns = g.n;
      key.window = window.side;
      key.stride = window.stride;
      break;
    }
    case OpKind::attention:
      key.rows = op.rows / s.context;
      key.columns = op.columns;
      key.inner = op.inner;
      key.count = op.count * s.samples / s.tensor;
      key.kv_count = std::max(1.0, op.kv_count / s.tensor) * s.samples;
      key.causal = model.causal && op.rows == op.columns;
      break;
    case OpKind::norm:
    case OpKind::reduction:
      key.rows = op.rows * share;
      key.columns = op.columns;
      break;
    case OpKind::elementwise:
      key.rows = results_of(op) * share;
      break;
    case OpKind::embedding:
      key.rows = op.rows * s.samples / s.context;
      key.columns = op.columns;
      key.inner = op.columns > 0 ? parameters_per_device(op, s) / op.columns : 0;
      break;
    case OpKind::loss:
      key.rows = op.rows * s.samples / s.context;
      key.columns =
          op.split == Split::vocabulary ? vocabulary_columns(job, op, s.tensor) : op.columns;
      break;
  }
  return key;
}

OpTime kernel_time(const Kernels& kernels, const OpKey& key) {
  if (key.kind == OpKind::attention) {
    Op op;
    op.kind = OpKind::attention;
    op.rows = key.rows;
    op.columns = key.columns;
    op.inner = key.inner;
    op.forward = Flops(4 * key.rows * key.columns * key.inner * key.count);
    return kernels.flash_attention(op, Sharding{});
  }
  const DeviceType& device = kernels.device();
  ProductFormat format = product_format(kernels.job(), device);
  if (format.dtype != key.dtype) format = {key.dtype, 1};
  const double misaligned = std::max(misalignment(key.columns), misalignment(key.inner));
  const bool convolution = key.kind == OpKind::convolution;
  const double rows = convolution ? key.rows * key.count : key.rows;
  const Product g{rows, key.columns, key.inner, convolution ? 1 : key.count, misaligned};
  const Product input_gradient{g.m, g.k, g.n, g.count, misaligned};
  const Product weight_gradient{g.n, g.k, g.m, g.count, misaligned};
  DeviceType d = device;
  if (convolution) d.memory_bandwidth = BytesPerSecond(HUGE_VAL);
  OpTime time{matmul_time(d, format, g),
              matmul_time(d, format, input_gradient),
              matmul_time(d, format, weight_gradient),
              {}};
  if (!convolution) return time;
  const double window = std::max(1, key.window * key.window);
  const double input = rows * key.stride * key.stride * key.inner / window;
  const double elements = input + rows * key.columns + key.inner * key.columns;
  const Seconds floor =
      memory_time(device, Bytes(activation_bytes(kernels.job().precision) * elements));
  for (Seconds* pass : {&time.forward, &time.backward, &time.weight_gradient})
    *pass = std::max(*pass, floor);
  return time;
}

Source OpPoints::correct(const Kernels& kernels, const Op& op, const Sharding& sharding,
                         OpTime& time) const {
  if (!is_kernel(kernels, op)) return Source::analytic;
  const OpKey key = op_key(kernels.job(), kernels.model(), op, sharding);
  const std::vector<NearShapes::Neighbour> neighbours = shapes_.near(key);
  if (neighbours.empty()) return Source::analytic;
  const OpTime own = kernel_time(kernels, key);
  std::vector<OpTime> there;
  for (const auto& n : neighbours) there.push_back(kernel_time(kernels, *n.key));
  const bool exact = neighbours.front().distance == 0;
  for (const auto& [measured, analytic] : kPasses) {
    if (own.*analytic <= Seconds(0)) continue;
    if (kernels.job().adapters && analytic == &OpTime::weight_gradient) continue;
    std::vector<ShapeRatio> ratios;
    for (std::size_t i = 0; i < neighbours.size(); ++i) {
      const auto& value = neighbours[i].sample->*measured;
      if (value && *value > Seconds(0) && there[i].*analytic > Seconds(0))
        ratios.push_back({neighbours[i].distance, *value / there[i].*analytic});
    }
    if (const auto factor = blended(ratios)) time.*analytic += own.*analytic * (*factor - 1);
  }
  return exact ? Source::measured : Source::interpolated;
}

}  // namespace plait
