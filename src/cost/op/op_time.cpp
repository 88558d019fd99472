#include "cost/op/op_time.h"

#include <algorithm>
#include <cmath>

#include "cost/framework/framework.h"

namespace plait {
namespace {

// Side of the results that one multiprocessor computes at a time: the usual tile of cuBLAS on large
// products (docs/cost-model.md#matmul).
constexpr double kTile = 128;
constexpr double kAlignment = 8;  // elements of 2 bytes: 16 bytes, one vector load
// Megatron-LM's default of make-vocab-size-divisible-by.
constexpr double kPaddedVocabulary = 128;
// Of the speed of a product with one scale a tensor. Set on the one published run that says that it
// has a scale for each row (torchao's Llama 3 8B).
constexpr double kRowScaledFp8 = 0.7;

// Products in fp32 on the usual cores, relative to those of 16 bits on tensor cores, as shares of
// the peak: less has to be moved for an operation. cuBLAS reaches .9 of an A100's 19.5 Tflop/s.
constexpr double kPlainProducts = 1.22;

}  // namespace

double misalignment(double elements) {
  if (divides(kAlignment, elements)) return 0;
  return divides(2, elements) ? 0.5 : 1;
}

Product sharded_product(const Job& job, const Op& op, const Sharding& s) {
  Product g{op.rows * s.samples / s.context, op.columns, op.inner, op.count};
  switch (op.split) {
    case Split::column:
      g.n /= s.tensor;
      break;
    case Split::vocabulary:
      g.n = vocabulary_columns(job, op, s.tensor);
      break;
    case Split::row:
      g.k /= s.tensor;
      break;
    case Split::heads:
    case Split::shard:
      g.count /= s.tensor;
      break;
    case Split::experts:
      // Each device keeps 1/expert of the experts and receives the rows of all of them.
      g.count /= s.expert;
      g.m *= s.expert;
      g.n /= s.tensor;
      break;
    case Split::replicated:
      if (s.sequence_parallel) g.m /= s.tensor;
      break;
  }
  g.misaligned = std::max(misalignment(g.n), misalignment(g.k));
  return g;
}

double activation_share(Split split, const Sharding& s) {
  const double whole = s.samples / s.context;
  if (split == Split::replicated) return s.sequence_parallel ? whole / s.tensor : whole;
  return whole / s.tensor;
}

Seconds moving_time(const DeviceType& d, double bytes) {
  return Bytes(bytes) / (d.memory_bandwidth * d.efficiency.memory);
}

double Product::tiles() const { return std::ceil(m / kTile) * std::ceil(n / kTile) * count; }

ProductFormat product_format(const Job& job, const DeviceType& device) {
  const Efficiency& e = device.efficiency;
  const DType dtype = compute_dtype(job.precision);
  if (dtype == DType::fp32) return {dtype, std::min(kPlainProducts, 0.95 / e.matmul)};
  if (dtype != DType::fp8) return {dtype, 1};
  if (job.precision == Precision::fp8_row) return {dtype, e.fp8 * kRowScaledFp8};
  return {dtype, e.fp8 * (job.precision == Precision::fp4 ? e.fp4 : 1)};
}

Seconds matmul_time(const DeviceType& d, const ProductFormat& format, const Product& g) {
  if (g.m <= 0 || g.n <= 0 || g.k <= 0 || g.count <= 0) return {};
  const Efficiency& e = d.efficiency;
  const double waves = g.tiles() / d.multiprocessors;
  const double slow = (1 + e.matmul_inner / g.k) * (1 + e.wave_tail / waves) *
                      (1 + g.misaligned * (e.misaligned - 1));
  const Seconds compute = Flops(2 * g.m * g.n * g.k * g.count) /
                          (d.peak_of(format.dtype) * (e.matmul * format.relative)) * slow;
  const double operand = size_in_bytes(format.dtype);
  const double result = std::max(2.0, operand);
  const double bytes = g.count * (operand * (g.m * g.k + g.k * g.n) + result * g.m * g.n);
  return std::max(compute, moving_time(d, bytes)) + e.kernel;
}

Seconds memory_time(const DeviceType& d, Bytes size, double kernels) {
  return moving_time(d, size.value) + kernels * d.efficiency.kernel;
}

double vocabulary_columns(const Job& job, const Op& op, int tensor) {
  double multiple = job.vocabulary_multiple;
  if (multiple == 0 && job.framework.traits.pads_vocabulary) multiple = kPaddedVocabulary;
  if (multiple <= 1) return op.columns / tensor;
  return std::ceil(op.columns / (multiple * tensor)) * multiple;
}

double parameters_per_device(const Op& op, const Sharding& s) {
  switch (op.split) {
    case Split::replicated:
      return op.parameters;
    case Split::experts:
      return op.parameters / s.expert / s.tensor;
    default:
      return op.parameters / s.tensor;
  }
}

}  // namespace plait
