#include "cost/op_time.h"

#include <algorithm>
#include <cmath>

#include "cost/framework.h"

namespace plait {
namespace {

constexpr double kTile = 128;
constexpr double kBackwardTraffic = 1.4;  // backward of a memory-bound op, relative to forward

struct MatmulShape {
  double m = 0;
  double n = 0;
  double k = 0;
  double count = 1;
};

// The product that one device computes.
MatmulShape sharded(const Op& op, const Sharding& s) {
  MatmulShape shape{op.rows * s.samples / s.context, op.columns, op.inner, op.count};
  switch (op.split) {
    case Split::column:
    case Split::vocabulary:
      shape.n /= s.tensor;
      break;
    case Split::row:
      shape.k /= s.tensor;
      break;
    case Split::heads:
    case Split::shard:
      shape.count /= s.tensor;
      break;
    case Split::experts:
      // Each device keeps 1/expert of the experts and receives the rows of all of them.
      shape.count /= s.expert;
      shape.m *= s.expert;
      shape.n /= s.tensor;
      break;
    case Split::replicated:
      if (s.sequence_parallel) shape.m /= s.tensor;
      break;
  }
  return shape;
}

// The fraction of an op's activations that one device holds or moves.
double activation_share(Split split, const Sharding& s) {
  const double whole = s.samples / s.context;
  if (split == Split::replicated) return s.sequence_parallel ? whole / s.tensor : whole;
  return whole / s.tensor;
}

Seconds attention_product(const DeviceType& d, DType dtype, Flops work, Bytes scores) {
  return std::max(work / (d.peak_of(dtype) * d.efficiency.batched),
                  scores / (d.memory_bandwidth * d.efficiency.memory)) +
         d.efficiency.kernel;
}

OpTime attention_time(const Job& job, const Model& model, const DeviceType& d, const Op& op,
                      const Sharding& s) {
  const DType dtype = job.precision == Precision::fp8 ? DType::bf16 : compute_dtype(job.precision);
  const double share = s.samples / s.context / s.tensor;
  const Efficiency& e = d.efficiency;
  if (job.attention == AttentionKernel::flash) {
    const bool half = model.causal && op.rows == op.columns;
    const Flops work = op.forward * share * (half ? 0.5 : 1.0);
    const FlopsPerSecond rate = d.peak_of(dtype) * e.attention;
    return {work / rate + e.kernel, 2.5 * work / (rate * e.attention_backward) + 2 * e.kernel, {}};
  }
  const Bytes scores(activation_bytes(job.precision) * op.count * op.rows * op.columns * share);
  const Flops product = op.forward * share / 2;  // of the two products
  const Seconds one = attention_product(d, dtype, product, scores);
  return {2 * one + memory_time(d, 4.5 * scores, 2), 4 * one + memory_time(d, 5.5 * scores, 2), {}};
}

OpTime matmul_op_time(const Job& job, const DeviceType& d, const Op& op, const Sharding& s) {
  const DType dtype = compute_dtype(job.precision);
  const MatmulShape g = sharded(op, s);
  return {matmul_time(d, dtype, g.m, g.n, g.k, g.count),
          matmul_time(d, dtype, g.m, g.k, g.n, g.count),
          op.parameters > 0 ? matmul_time(d, dtype, g.n, g.k, g.m, g.count) : Seconds(0)};
}

OpTime loss_time(const Job& job, const DeviceType& d, const Op& op, const Sharding& s) {
  const double logits = op.rows * op.columns * activation_share(op.split, s);
  const Seconds both = memory_time(d, Bytes(traits_of(job.framework).loss_bytes * logits), 8);
  return {both / 2, both / 2, {}};
}

}  // namespace

Seconds matmul_time(const DeviceType& d, DType dtype, double m, double n, double k, double count) {
  if (m <= 0 || n <= 0 || k <= 0 || count <= 0) return {};
  const Efficiency& e = d.efficiency;
  const double waves = std::ceil(m / kTile) * std::ceil(n / kTile) * count / d.multiprocessors;
  const bool aligned = std::fmod(n, 8) == 0 && std::fmod(k, 8) == 0;
  const double slow =
      (1 + e.matmul_inner / k) * (1 + e.matmul_tail / waves) * (aligned ? 1 : e.misaligned);
  const double fraction = dtype == DType::fp8 ? e.matmul * e.fp8 : e.matmul;
  const Seconds compute = Flops(2 * m * n * k * count) / (d.peak_of(dtype) * fraction) * slow;
  const Bytes moved(size_in_bytes(dtype) * count * (m * k + k * n + m * n));
  return std::max(compute, moved / (d.memory_bandwidth * e.memory)) + e.kernel;
}

Seconds memory_time(const DeviceType& d, Bytes size, double kernels) {
  return size / (d.memory_bandwidth * d.efficiency.memory) + kernels * d.efficiency.kernel;
}

OpTime op_time(const Job& job, const Model& model, const DeviceType& device, const Op& op,
               const Sharding& sharding) {
  switch (op.kind) {
    case OpKind::matmul:
    case OpKind::convolution:
      return matmul_op_time(job, device, op, sharding);
    case OpKind::attention:
      return attention_time(job, model, device, op, sharding);
    case OpKind::loss:
      return loss_time(job, device, op, sharding);
    case OpKind::norm:
    case OpKind::elementwise:
    case OpKind::embedding:
      break;
  }
  const Bytes moved(activation_bytes(job.precision) * op.moved * traits_of(job.framework).traffic *
                    activation_share(op.split, sharding));
  const Seconds forward = memory_time(device, moved);
  return {forward, kBackwardTraffic * forward, {}};
}

SavedBytes saved_bytes(const Job& job, const Model& model, const Op& op, const Sharding& s) {
  double share = s.samples / s.context;
  if (op.saved_is_sharded || s.sequence_parallel) share /= s.tensor;
  Bytes bytes = share * (Bytes(activation_bytes(job.precision) * op.saved) + op.saved_mask);
  SavedBytes saved{bytes, bytes};
  if (op.kind != OpKind::attention) return saved;
  const double positions = op.count * op.rows * s.samples / s.context / s.tensor;
  if (job.attention == AttentionKernel::plain) {
    // Softmax output, and with dropout its mask and its output (Korthikanti et al., section 4.1).
    const double per_score =
        activation_bytes(job.precision) * (model.dropout ? 2 : 1) + (model.dropout ? 1 : 0);
    saved.all += Bytes(per_score * positions * op.columns);
  } else {
    saved.all += Bytes(4 * positions);  // log of the softmax's denominator
    saved.selective = saved.all;        // there is nothing quadratic to drop
  }
  return saved;
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
