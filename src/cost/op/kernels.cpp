#include "cost/op/kernels.h"

#include <algorithm>
#include <cmath>

#include "cost/op/adapters.h"
#include "cost/op/eager_kernels.h"
#include "cost/op/fused_kernels.h"
#include "cost/op/libtorch_kernels.h"

namespace plait {
namespace {

// A GPT block has this many ops that are products or attention; they share its host time.
constexpr double kProductsOfBlock = 5;
constexpr double kHeadAlignment = 8;  // elements of a head: 16 bytes, one vector load
// Megatron-LM uses its fused softmax up to this many keys, and where 4 divides the heads of all
// samples together (FusedScaleMaskSoftmax.is_kernel_available).
constexpr double kFusedSoftmaxColumns = 4096;
constexpr double kFusedSoftmaxHeads = 4;
// Passes over the scores of the fused softmax and of dropout, from what they read and write:
// forward 2 and 2 with a mask of one byte a score, backward 3 and 2 with that mask.
constexpr double kSoftmaxForward = 4.5;
constexpr double kSoftmaxBackward = 5.5;
// Of the work of weight gradients when only adapters of unknown rank are trained. Set, not fitted:
// LoRA of rank r on an n x n matrix has 2 r / n of it, 3 % for rank 64 and n = 4096, in kernels
// that are short.
constexpr double kAdapterWork = 0.05;
// An element that becomes an operand in 8 bits: 2 bytes are read, one is written for this product
// and one, transposed, for those of the backward pass.
constexpr double kConversionBytes = 4;

// Of the speed of the product that a convolution is equivalent to: two Wide-ResNets of plait's own
// runtime on one H200.
constexpr double kConvolution = 0.42;

// One of the products of plain attention: it reads or writes all scores.
Seconds score_product(const DeviceType& d, const Job& job, const Op& op, Flops work, Bytes scores) {
  const Efficiency& e = d.efficiency;
  const double fraction = divides(kHeadAlignment, op.inner) ? e.batched : e.batched_misaligned;
  return std::max(work / (d.peak_of(attention_dtype(job.precision)) * fraction),
                  moving_time(d, scores.value)) +
         e.kernel;
}

}  // namespace

Kernels::Kernels(const Job& job, const Model& model, const DeviceType& device)
    : job_(job),
      model_(model),
      device_(device),
      traits_(traits_of(job)),
      is_autocast_(plait::is_autocast(job)),
      element_bytes_(activation_bytes(job.precision)) {}

std::unique_ptr<const Kernels> kernels_of(const Job& job, const Model& model,
                                          const DeviceType& device) {
  switch (job.framework.traits.kernels) {
    case KernelStyle::eager:
      return std::make_unique<EagerKernels>(job, model, device);
    case KernelStyle::libtorch:
      return std::make_unique<LibtorchKernels>(job, model, device);
    case KernelStyle::fused:
      break;
  }
  return std::make_unique<FusedKernels>(job, model, device);
}

OpTime op_time(const Job& job, const Model& model, const DeviceType& device, const Op& op,
               const Sharding& sharding) {
  return kernels_of(job, model, device)->time(op, sharding);
}

OpTime Kernels::time(const Op& op, const Sharding& sharding) const {
  switch (op.kind) {
    case OpKind::matmul:
      return product(device_, op, sharding);
    case OpKind::convolution:
      return convolution(op, sharding);
    case OpKind::attention:
      return attention(op, sharding);
    case OpKind::loss:
      return loss(op, sharding);
    case OpKind::embedding:
      return embedding(op, sharding);
    case OpKind::norm:
    case OpKind::reduction:
    case OpKind::elementwise:
      break;
  }
  return memory_bound(op, sharding);
}

Seconds Kernels::host_of_product(const Sharding& s) const {
  return traits_.host_block / kProductsOfBlock * (s.tensor > 1 ? 1 + traits_.host_tensor : 1);
}

Seconds Kernels::moving(double bytes) const { return moving_time(device_, bytes); }

// Scores, softmax and weighted sum in separate kernels. The fused softmax reads the scores in fp16
// and writes probabilities, and with dropout a mask; without it they are converted to fp32 and back
// around a mask and a softmax of their own.
OpTime Kernels::plain_attention(const Op& op, const Sharding& s) const {
  const double heads = op.count * s.samples / s.tensor;
  const Bytes scores(element_bytes_ * heads * op.rows / s.context * op.columns);
  const Flops work = op.forward * (s.samples / s.context / s.tensor / 2);  // of one product
  const Seconds one = score_product(device_, job_, op, work, scores);
  OpTime time{2 * one + memory_time(device_, kSoftmaxForward * scores, 2),
              4 * one + memory_time(device_, kSoftmaxBackward * scores, 2),
              {},
              {}};
  const bool half = element_bytes_ == 2;
  const bool fused = traits_.fused_softmax && half && op.columns <= kFusedSoftmaxColumns &&
                     divides(kFusedSoftmaxHeads, heads);
  if (fused) return time;
  // Kernels, as PyTorch dispatches them: to fp32, scale and mask, softmax, back; three of backward.
  time.forward += memory_time(device_, traits_.softmax_forward * scores, 4);
  time.backward += memory_time(device_, traits_.softmax_backward * scores, 3);
  if (half) time.host = traits_.host_separate_softmax;
  return time;
}

// `least_head`: kernels are bound by exponentials, so that a head counts as at least so wide.
OpTime Kernels::flash_kernel(const Op& op, const Sharding& s, double least_head) const {
  const Efficiency& e = device_.efficiency;
  const bool half = model_.causal && op.rows == op.columns;
  const Flops work = op.forward * (s.samples / s.context / s.tensor * (half ? 0.5 : 1));
  const double reached =
      traits_.flash_kernel == FlashKernel::native   ? std::min(1.0, op.inner / least_head)
      : traits_.flash_kernel == FlashKernel::second ? e.portable_attention
                                                    : e.portable_attention * e.early_attention;
  const FlopsPerSecond rate =
      device_.peak_of(attention_dtype(job_.precision)) * (e.attention * reached);
  return {work / rate + e.kernel,
          2.5 * work / (rate * e.attention_backward) + 2 * e.kernel,
          {},
          {},
          {}};
}

// Rows sent to experts are sorted, padded and combined, by both ops that exchange them.
Seconds Kernels::dispatch_time(const Op& op, const Sharding& s) const {
  const double rows = op.expert_exchange * s.samples / s.context / s.tensor;
  return moving(traits_.traffic * traits_.expert_traffic / 2 * element_bytes_ * rows);
}

OpTime Kernels::product(const DeviceType& d, const Op& op, const Sharding& s) const {
  const bool output_layer = op.split == Split::vocabulary;
  // Autocast does not know the grouped products of experts: they stay in fp32.
  const bool wide = is_autocast_ && op.split == Split::experts;
  const ProductFormat format = wide           ? ProductFormat{DType::fp32, 1}
                               : output_layer ? ProductFormat{attention_dtype(job_.precision), 1}
                                              : product_format(job_, d);
  const Product g = sharded_product(job_, op, s);
  const Product input_gradient{g.m, g.k, g.n, g.count, g.misaligned};
  const Product weight_gradient{g.n, g.k, g.m, g.count, g.misaligned};
  OpTime time{matmul_time(d, format, g), matmul_time(d, format, input_gradient),
              matmul_time(d, format, weight_gradient), host_of_product(s)};
  if (job_.adapters)
    time.weight_gradient = job_.adapter_rank > 0 ? Seconds(0) : kAdapterWork * time.weight_gradient;
  if (format.dtype == DType::fp8) {
    // Programs that keep what they converted do so with weights, once a step.
    const double weights = traits_.keeps_quantised ? 0 : g.n * g.k;
    time.forward += moving_time(d, kConversionBytes * g.count * (g.m * g.k + weights));
    time.backward += moving_time(d, kConversionBytes * g.count * g.m * g.n);
  }
  if (output_layer) return time;
  add_around_product(d, op, s, g, time);
  const Seconds cast = job_.four_bit_weights
                           ? unpacking_time(job_, d, op, s)
                           : moving_time(d, traits_.cast_bytes * parameters_per_device(op, s));
  time.forward += cast;
  time.backward += cast;
  if (op.expert_exchange > 0) {
    const Seconds dispatch = dispatch_time(op, s);
    time.forward += dispatch;
    time.backward += dispatch;
    time.host += traits_.host_experts / 2;
  }
  if (op.split != Split::experts)
    for (const Product& each : {g, input_gradient, weight_gradient})
      if (each.tiles() < d.multiprocessors) time.host += traits_.host_split;
  if (!has_adapter(job_, op)) return time;
  const OpTime adapter = adapter_time(job_, d, op, s);
  time.forward += adapter.forward;
  time.backward += adapter.backward;
  time.weight_gradient += adapter.weight_gradient;
  time.host += 2 * host_of_product(s);
  time.host_forward += host_of_product(s);
  return time;
}

// A convolution is the product that it is equivalent to, but reads its input once, not once for
// every place of the kernel.
OpTime Kernels::convolution(const Op& op, const Sharding& s) const {
  DeviceType unbound = device_;
  unbound.memory_bandwidth = BytesPerSecond(HUGE_VAL);
  OpTime time = product(unbound, op, s);
  for (Seconds* pass : {&time.forward, &time.backward, &time.weight_gradient})
    *pass = (*pass - device_.efficiency.kernel) / kConvolution + device_.efficiency.kernel;
  const double bytes =
      element_bytes_ * (op.moved * activation_share(op.split, s) + parameters_per_device(op, s));
  const Seconds floor = memory_time(device_, Bytes(bytes));
  // PyTorch lays images out feature by feature; 16-bit kernels have another layout. What they read
  // and write is converted before and after.
  const Seconds conversion =
      element_bytes_ == 2 ? memory_time(device_, Bytes(2 * bytes), 3) : Seconds(0);
  for (Seconds* pass : {&time.forward, &time.backward, &time.weight_gradient})
    *pass = std::max(*pass, floor) + conversion;
  return time;
}

OpTime Kernels::loss(const Op& op, const Sharding& s) const {
  const double bytes = traits_.loss_bytes * loss_share();
  const double columns =
      op.split == Split::vocabulary ? vocabulary_columns(job_, op, s.tensor) : op.columns;
  const double logits = op.rows * s.samples / s.context * columns;
  const Seconds both = memory_time(device_, Bytes(bytes * logits), 8) + traits_.host_head;
  return {both / 2, both / 2, {}, {}};
}

OpTime Kernels::embedding(const Op& op, const Sharding& s) const {
  OpTime time = fused_memory_time(*this, op, s);
  if (op.split == Split::vocabulary) {
    time.forward += traits_.host_embedding / 2;
    time.backward += traits_.host_embedding / 2;
  }
  return time;
}

}  // namespace plait
