#include "cost/op/op_time.h"

#include <algorithm>
#include <cmath>

#include "cost/framework/framework.h"
#include "cost/op/eager.h"

namespace plait {
namespace {

constexpr double kTile = 128;
constexpr double kAlignment = 8;  // elements
// A GPT block has this many ops that are products or attention; they share its host time.
constexpr double kProductsOfBlock = 5;
constexpr double kPaddedVocabulary = 128;
constexpr double kFusedSoftmaxColumns = 4096;  // and a number of heads that 4 divides
constexpr double kFusedSoftmaxHeads = 4;
constexpr double kRowScaledFp8 = 0.55;  // of a product with one scale a tensor
// Native flash kernels are bound by exponentials: a head counts as at least so wide.
constexpr double kLeastHead = 96;
// The library's, on short sequences: passes over queries' elements, and small kernels before and
// after the large one (20 shapes of ten families on one H200).
constexpr double kLeastHeadOfLibrary = 80;
constexpr double kReadForward = 1.5;
constexpr double kReadBackward = 3.5;
constexpr double kBackwardKernels = 4;
// Backward of concatenated queries, keys and values concatenates their gradients; of separate ones
// it adds them up. Passes over them, where nothing is fused.
constexpr double kConcatenation = 8;
// Of `kernel`: many of the kernels of a function that is written out work on one value a row.
constexpr double kShortKernel = 0.75;
constexpr double kAdapterWork = 0.05;  // of the weight gradients, when only adapters are trained

bool divides(double part, double whole) { return std::fmod(whole, part) == 0; }

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

namespace {

Seconds host_of_product(const FrameworkTraits& traits, const Sharding& s) {
  return traits.host_block / kProductsOfBlock * (s.tensor > 1 ? 1 + traits.host_tensor : 1);
}

// Host time of a product or of attention where every kernel is launched by itself.
void launch(const FrameworkTraits& traits, const Sharding& s, const Launches& launches,
            OpTime& time) {
  const Seconds block = host_of_product(traits, s);
  time.host_forward += block / 2 + launches.forward * traits.host_kernel;
  time.host += block + (launches.forward + launches.backward) * traits.host_kernel;
}

Seconds moving(const DeviceType& d, double bytes) {
  return Bytes(bytes) / (d.memory_bandwidth * d.efficiency.memory);
}

// One of the products of plain attention: it reads or writes all scores.
Seconds score_product(const DeviceType& d, const Job& job, const Op& op, Flops work, Bytes scores) {
  const Efficiency& e = d.efficiency;
  const double fraction = divides(kAlignment, op.inner) ? e.batched : e.batched_misaligned;
  return std::max(work / (d.peak_of(attention_dtype(job.precision)) * fraction),
                  moving(d, scores.value)) +
         e.kernel;
}

// Scores, softmax and weighted sum in separate kernels. The fused softmax reads the scores in fp16
// and writes probabilities, and with dropout a mask; without it they are converted to fp32 and back
// around a mask and a softmax of their own.
OpTime plain_attention_time(const Job& job, const DeviceType& d, const Op& op, const Sharding& s) {
  const FrameworkTraits traits = traits_of(job);
  const double heads = op.count * s.samples / s.tensor;
  const Bytes scores(activation_bytes(job.precision) * heads * op.rows / s.context * op.columns);
  const Flops work = op.forward * (s.samples / s.context / s.tensor / 2);  // of one product
  const Seconds one = score_product(d, job, op, work, scores);
  OpTime time{
      2 * one + memory_time(d, 4.5 * scores, 2), 4 * one + memory_time(d, 5.5 * scores, 2), {}, {}};
  const bool half = activation_bytes(job.precision) == 2;
  const bool fused = traits.fused_softmax && half && op.columns <= kFusedSoftmaxColumns &&
                     divides(kFusedSoftmaxHeads, heads);
  if (fused) return time;
  time.forward += memory_time(d, traits.softmax_forward * scores, 4);
  time.backward += memory_time(d, traits.softmax_backward * scores, 3);
  if (half) time.host = traits.host_unfused;
  return time;
}

}  // namespace

OpTime flash_attention_time(const Job& job, const Model& model, const DeviceType& d, const Op& op,
                            const Sharding& s) {
  const Efficiency& e = d.efficiency;
  const bool half = model.causal && op.rows == op.columns;
  const Flops work = op.forward * (s.samples / s.context / s.tensor * (half ? 0.5 : 1));
  const bool is_native = traits_of(job).native_attention;
  const bool unfused = traits_of(job).unfused;
  const double least = unfused ? kLeastHeadOfLibrary : kLeastHead;
  const double native = is_native ? std::min(1.0, op.inner / least) : e.portable_attention;
  const FlopsPerSecond rate = d.peak_of(attention_dtype(job.precision)) * (e.attention * native);
  OpTime time{work / rate + e.kernel,
              2.5 * work / (rate * e.attention_backward) + 2 * e.kernel,
              {},
              {},
              {}};
  if (!unfused) return time;
  const double heads = op.forward.value / (4 * op.rows * op.columns * op.inner);
  const double bytes = activation_bytes(job.precision) * heads * op.rows * op.inner * s.samples /
                       s.context / s.tensor;
  time.forward += moving(d, kReadForward * bytes);
  time.backward += moving(d, kReadBackward * bytes) + kBackwardKernels * e.kernel;
  return time;
}

namespace {

// Scores are multiplied, added to, normalised, converted and multiplied in kernels of their own
// (Falcon's, T5's and BLOOM's steps on one H200).
OpTime score_attention_time(const Job& job, const DeviceType& d, const Op& op, const Sharding& s) {
  constexpr double kForwardBytes = 22;  // of a score
  constexpr double kBackwardBytes = 37;
  constexpr double kBiasForward = 8;  // and where the bias is learnt (T5)
  constexpr double kBiasBackward = 20;
  constexpr double kProducts = 0.6;  // of the peak
  constexpr double kNarrowProducts = 0.2;
  constexpr double kKernels = 12;
  const double scores = op.count * op.rows * op.columns * s.samples / s.context / s.tensor;
  const bool narrow = multiplies_scores_in_16_bits(op);
  const bool learnt = op.parts > 1;
  const FlopsPerSecond rate = narrow ? d.peak_of(attention_dtype(job.precision)) * kNarrowProducts
                                     : d.peak_of(DType::fp32) * kProducts;
  const Seconds product = Flops(2 * scores * op.inner) / rate;
  OpTime time{
      2 * product +
          memory_time(d, Bytes((kForwardBytes + (learnt ? kBiasForward : 0)) * scores), kKernels),
      4 * product +
          memory_time(d, Bytes((kBackwardBytes + (learnt ? kBiasBackward : 0)) * scores), kKernels),
      {},
      {},
      {}};
  time.host_forward = kKernels * traits_of(job).host_kernel;
  time.host = 2 * time.host_forward;
  return time;
}

OpTime attention_time(const Job& job, const Model& model, const DeviceType& d, const Op& op,
                      const Sharding& s) {
  const FrameworkTraits traits = traits_of(job);
  const bool flash = job.attention == AttentionKernel::flash;
  OpTime time = computes_scores(job, op) ? score_attention_time(job, d, op, s)
                : flash                  ? flash_attention_time(job, model, d, op, s)
                                         : plain_attention_time(job, d, op, s);
  if (traits.unfused) {
    const double elements = op.saved * activation_share(op.split, s);
    time.backward += moving(
        d, (op.parts == 1 ? kConcatenation : 1) * activation_bytes(job.precision) * elements);
    launch(traits, s, {1, op.parts == 1 ? 2.0 : 1.0}, time);
    return time;
  }
  // Queries, keys and values are cut into heads and laid out, backward likewise.
  const Seconds layout = memory_time(d,
                                     Bytes(traits.traffic * activation_bytes(job.precision) *
                                           op.moved * activation_share(op.split, s)),
                                     3);
  time.forward += layout;
  time.backward += layout;
  time.host += host_of_product(traits, s);
  return time;
}

// Rows sent to experts are sorted, padded and combined, by both ops that exchange them.
Seconds dispatch_time(const Job& job, const FrameworkTraits& traits, const DeviceType& d,
                      const Op& op, const Sharding& s) {
  const double rows = op.expert_exchange * s.samples / s.context / s.tensor;
  return moving(
      d, traits.traffic * traits.expert_traffic / 2 * activation_bytes(job.precision) * rows);
}

// What a product brings along where nothing is fused: under autocast its input is converted for
// each matrix if it comes from the fp32 stream, and its weights are; a bias' gradient is a sum over
// rows.
void add_unfused(const Job& job, const DeviceType& d, const Op& op, const Product& g,
                 OpTime& time) {
  constexpr double kBiasPasses = 2.2;
  constexpr double kCastForward = 2.8;
  constexpr double kCastBackward = 3.8;
  const bool autocast = is_autocast(job);
  const double element = activation_bytes(job.precision);
  if (op.parameters > op.inner * op.columns * op.count)
    time.backward += moving(d, kBiasPasses * element * g.count * g.m * g.n);
  if (autocast && op.split != Split::row) {
    const double input = 2 * op.parts * g.count * g.m * g.k;
    time.forward += moving(d, kCastForward * input);
    time.backward += moving(d, kCastBackward * input);
  }
}

OpTime product_op_time(const Job& job, const DeviceType& d, const Op& op, const Sharding& s) {
  const FrameworkTraits traits = traits_of(job);
  const bool output_layer = op.split == Split::vocabulary;
  // Autocast does not know the grouped products of experts: they stay in fp32.
  const bool wide = is_autocast(job) && op.split == Split::experts;
  const ProductFormat format = wide           ? ProductFormat{DType::fp32, 1}
                               : output_layer ? ProductFormat{attention_dtype(job.precision), 1}
                                              : product_format(job, d);
  const Product g = sharded_product(job, op, s);
  const Product input_gradient{g.m, g.k, g.n, g.count, g.misaligned};
  const Product weight_gradient{g.n, g.k, g.m, g.count, g.misaligned};
  OpTime time{matmul_time(d, format, g), matmul_time(d, format, input_gradient),
              matmul_time(d, format, weight_gradient), host_of_product(traits, s)};
  if (job.adapters) time.weight_gradient = kAdapterWork * time.weight_gradient;
  if (format.dtype == DType::fp8) {
    // Operands are read in 16 bits, scaled and written in 8, with a transposed copy for backward.
    time.forward += moving(d, 2 * g.count * (g.m * g.k + g.n * g.k));
    time.backward += moving(d, 2 * g.count * g.m * g.n);
  }
  if (output_layer) return time;
  if (traits.unfused) {
    add_unfused(job, d, op, g, time);
    time.host = Seconds(0);
    launch(traits, s, product_launches(op, is_autocast(job)), time);
  }
  const Seconds cast = moving(d, traits.cast_bytes * parameters_per_device(op, s));
  time.forward += cast;
  time.backward += cast;
  if (op.expert_exchange > 0) {
    const Seconds dispatch = dispatch_time(job, traits, d, op, s);
    time.forward += dispatch;
    time.backward += dispatch;
    time.host += traits.host_experts / 2;
  }
  if (op.split != Split::experts)
    for (const Product& product : {g, input_gradient, weight_gradient})
      if (product.tiles() < d.multiprocessors) time.host += traits.host_split;
  return time;
}

// A convolution is the product that it is equivalent to, but reads its input once, not once for
// every place of the kernel.
OpTime convolution_time(const Job& job, const DeviceType& d, const Op& op, const Sharding& s) {
  DeviceType unbound = d;
  unbound.memory_bandwidth = BytesPerSecond(HUGE_VAL);
  OpTime time = product_op_time(job, unbound, op, s);
  const double bytes = activation_bytes(job.precision) *
                       (op.moved * activation_share(op.split, s) + parameters_per_device(op, s));
  const Seconds floor = memory_time(d, Bytes(bytes));
  for (Seconds* pass : {&time.forward, &time.backward, &time.weight_gradient})
    *pass = std::max(*pass, floor);
  return time;
}

OpTime loss_time(const Job& job, const Model& model, const DeviceType& d, const Op& op,
                 const Sharding& s) {
  const FrameworkTraits traits = traits_of(job);
  const double bytes = traits.loss_bytes * (traits.unfused ? eager_loss_share(job, model) : 1.0);
  const double columns =
      op.split == Split::vocabulary ? vocabulary_columns(job, op, s.tensor) : op.columns;
  const double logits = op.rows * s.samples / s.context * columns;
  const Seconds both = memory_time(d, Bytes(bytes * logits), 8) + traits.host_head;
  return {both / 2, both / 2, {}, {}};
}

OpTime unfused_op_time(const Job& job, const FrameworkTraits& traits, const DeviceType& d,
                       const Op& op, const Sharding& s) {
  const EagerKernels kernels = eager_kernels(op, is_autocast(job));
  const double bytes =
      activation_bytes(job.precision) * eager_elements(op) * activation_share(op.split, s);
  const double launches = kernels.launches + kernels.launches_backward;
  return {memory_time(d, Bytes(kernels.forward * bytes), kShortKernel * kernels.launches),
          memory_time(d, Bytes(kernels.backward * bytes), kShortKernel * kernels.launches_backward),
          {},
          launches * traits.host_kernel,
          kernels.launches * traits.host_kernel};
}

// Backward reads the output's gradient and what was saved, and writes the input's gradient. A
// norm's is added to the gradient that comes along the residual stream.
OpTime memory_op_time(const Job& job, const DeviceType& d, const Op& op, const Sharding& s) {
  const FrameworkTraits traits = traits_of(job);
  const double bytes =
      traits.traffic * activation_bytes(job.precision) * activation_share(op.split, s);
  if (traits.unfused && op.kind != OpKind::embedding) return unfused_op_time(job, traits, d, op, s);
  const double again = op.moved > 0 ? (op.kind == OpKind::norm ? 2 : 1) * op.saved : 0;
  OpTime time{memory_time(d, Bytes(bytes * op.moved)),
              memory_time(d, Bytes(bytes * (op.moved + again))),
              {},
              {}};
  if (op.kind == OpKind::embedding && op.split == Split::vocabulary) {
    time.forward += traits.host_embedding / 2;
    time.backward += traits.host_embedding / 2;
  }
  return time;
}

}  // namespace

double Product::tiles() const { return std::ceil(m / kTile) * std::ceil(n / kTile) * count; }

ProductFormat product_format(const Job& job, const DeviceType& device) {
  const Efficiency& e = device.efficiency;
  const DType dtype = compute_dtype(job.precision);
  if (dtype != DType::fp8) return {dtype, 1};
  if (job.precision == Precision::fp8_row) return {dtype, e.fp8 * kRowScaledFp8};
  return {dtype, e.fp8 * (job.precision == Precision::fp4 ? e.fp4 : 1)};
}

Seconds matmul_time(const DeviceType& d, const ProductFormat& format, const Product& g) {
  if (g.m <= 0 || g.n <= 0 || g.k <= 0 || g.count <= 0) return {};
  const Efficiency& e = d.efficiency;
  const double waves = g.tiles() / d.multiprocessors;
  const double slow = (1 + e.matmul_inner / g.k) * (1 + e.matmul_tail / waves) *
                      (1 + g.misaligned * (e.misaligned - 1));
  const Seconds compute = Flops(2 * g.m * g.n * g.k * g.count) /
                          (d.peak_of(format.dtype) * (e.matmul * format.relative)) * slow;
  const double operand = size_in_bytes(format.dtype);
  const double result = std::max(2.0, operand);
  const double bytes = g.count * (operand * (g.m * g.k + g.k * g.n) + result * g.m * g.n);
  return std::max(compute, moving(d, bytes)) + e.kernel;
}

Seconds memory_time(const DeviceType& d, Bytes size, double kernels) {
  return moving(d, size.value) + kernels * d.efficiency.kernel;
}

double vocabulary_columns(const Job& job, const Op& op, int tensor) {
  double multiple = job.vocabulary_multiple;
  if (multiple == 0 && traits_of(job).pads_vocabulary) multiple = kPaddedVocabulary;
  if (multiple <= 1) return op.columns / tensor;
  return std::ceil(op.columns / (multiple * tensor)) * multiple;
}

OpTime op_time(const Job& job, const Model& model, const DeviceType& device, const Op& op,
               const Sharding& sharding) {
  switch (op.kind) {
    case OpKind::matmul:
      return product_op_time(job, device, op, sharding);
    case OpKind::convolution:
      return convolution_time(job, device, op, sharding);
    case OpKind::attention:
      return attention_time(job, model, device, op, sharding);
    case OpKind::loss:
      return loss_time(job, model, device, op, sharding);
    case OpKind::norm:
    case OpKind::reduction:
    case OpKind::elementwise:
    case OpKind::embedding:
      break;
  }
  return memory_op_time(job, device, op, sharding);
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
