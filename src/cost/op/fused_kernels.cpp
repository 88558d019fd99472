#include "cost/op/fused_kernels.h"

#include "cost/comm/overlap.h"

namespace plait {
namespace {

// Native flash kernels are bound by exponentials: a head counts as at least this wide. Measured on
// an H200: 0.67 ps a score with heads of 64, 0.83 with 128 (docs/cost-model.md#attention).
constexpr double kLeastFusedHead = 96;

// Of attention with a learnt bias: how many times as long it takes, forward and backward, and bytes
// of a score that the gradient of the bias moves. Encoder and decoder of T5 large on one H200
// (docs/cost-model.md#attention).
constexpr double kBiasedForward = 2.5;
constexpr double kBiasedBackward = 4;
constexpr double kBiasGradientBytes = 4;

// Bytes of a product's input that is kept in the format of fp8 or fp4 products, for each element.
double quantised_bytes(Precision precision) {
  if (precision == Precision::fp4) return 0.5;
  return compute_dtype(precision) == DType::fp8 ? 1 : activation_bytes(precision);
}

}  // namespace

OpTime fused_memory_time(const Kernels& kernels, const Op& op, const Sharding& s) {
  const double bytes = kernels.traits().traffic * activation_bytes(kernels.job().precision) *
                       activation_share(op.split, s);
  const double again = op.moved > 0 ? (op.kind == OpKind::norm ? 2 : 1) * op.saved : 0;
  return {memory_time(kernels.device(), Bytes(bytes * op.moved)),
          memory_time(kernels.device(), Bytes(bytes * (op.moved + again))),
          {},
          {}};
}

// A learnt bias of scores (T5) goes into a slower kernel, which also gives its gradient: each
// sample writes one of the size of the scores, and they are summed up.
OpTime FusedKernels::flash_attention(const Op& op, const Sharding& s) const {
  OpTime time = flash_kernel(op, s, kLeastFusedHead);
  if (!op.learnt_bias || traits().fused_softmax) return time;
  const double scores = op.count * op.rows * op.columns * s.samples / s.context / s.tensor;
  time.forward = kBiasedForward * time.forward;
  time.backward = kBiasedBackward * time.backward + moving(kBiasGradientBytes * scores);
  return time;
}

OpTime FusedKernels::attention(const Op& op, const Sharding& s) const {
  const bool flash = job().attention == AttentionKernel::flash;
  OpTime time = flash ? flash_attention(op, s) : plain_attention(op, s);
  // Queries, keys and values are cut into heads and laid out, backward likewise.
  const Seconds layout = memory_time(
      device(),
      Bytes(traits().traffic * element_bytes() * op.moved * activation_share(op.split, s)), 3);
  time.forward += layout;
  time.backward += layout;
  time.host += host_of_product(s);
  return time;
}

OpTime FusedKernels::memory_bound(const Op& op, const Sharding& s) const {
  return fused_memory_time(*this, op, s);
}

// Bytes that PyTorch's own modules keep besides: an RMS norm the conversion of its input to fp32
// and the normalised value, 6 instead of 2; silu its result, for the product with the gate.
double FusedKernels::between_kernels(const Op& op) const {
  if (!traits().keeps_between_kernels || element_bytes() != 2) return 0;
  if (op.function == Function::rms_norm) return 4 * op.saved;
  if (op.function == Function::silu && op.gated) return element_bytes() * op.saved / 2;
  return 0;
}

double FusedKernels::kept_bytes(const Op& op) const {
  // A relu keeps its result, which the next product keeps anyway.
  if (op.function == Function::relu && op.kind == OpKind::elementwise && !op.gated) return 0;
  if (traits().applies_router_weight_in_activation && op.combines_experts) return 0;
  if (!traits().keeps_quantised) return element_bytes() * op.saved + between_kernels(op);
  const double quantised = quantised_bytes(job().precision);
  // The output layer and routers multiply in 16 bits.
  const bool wide = op.split == Split::vocabulary || op.split == Split::replicated;
  if (op.kind == OpKind::matmul) return (wide ? element_bytes() : quantised) * op.saved;
  // Attention keeps its own result, which the projection's converted input is not a substitute for.
  const bool own = op.kind == OpKind::attention && quantised < element_bytes();
  return element_bytes() * (op.saved + (own ? op.rows * op.count * op.inner : 0));
}

Seconds FusedKernels::layer_time(const UnitCost& device, const HostWork& host) const {
  const double launching = host.recomputed ? host.total.value * (1 + traits().host_recompute) +
                                                 traits().host_checkpoint.value
                                           : host.total.value;
  return Seconds(beside(device.total().value, launching, traits().host_overlap_exponent));
}

}  // namespace plait
