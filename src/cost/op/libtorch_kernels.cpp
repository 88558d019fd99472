#include "cost/op/libtorch_kernels.h"

#include <algorithm>
#include <variant>

#include "cost/comm/overlap.h"
#include "cost/op/eager.h"

namespace plait {
namespace {

// A tensor that is read or written, in the passes of the eager table (cost/op/eager.cpp).
constexpr double kPass = 0.75;
// The same where a kernel finds every other part of a row, of which it loads elements one by one:
// the gates of Llama 3.2 1B and Qwen 2.5 1.5B on one H200.
constexpr double kPassOfParts = 2 * kPass;
// Passes over the gradient of a product's result, to sum it up for the bias (eager_kernels.cpp).
constexpr double kSumOfBias = 2.2;
// Tensors that the runtime's own functions read and write (runtime/torch/comm/kernels.cpp). One
// half of a head's features is scaled, then the other half times the sine is added: 5 for the 2
// that are moved.
constexpr double kTurned = 5.0 / 2;
// The gate, and its product with the other half; backward the gate again, two products with the
// gradient, and the gate's gradient.
constexpr double kGated = 5;
constexpr double kGatedBackward = 11;
// Of a norm of images, whose rows are the maps of each sample, and of a convolution, of the peak:
// 49 ops of Wide-ResNet 250M one by one on one H200.
constexpr EagerPasses kMaps{6.1, 5.5, 0, 1, 1, 8900, 6700};
constexpr double kReachedByConvolution = 0.42;
// Elements more that a row of one head takes as long as, forward and backward: Qwen 3 0.6B on one
// H200, whose norms of queries and keys have rows of 128.
constexpr double kRowOfHead = 1600;
// Attention with something that is added to the scores, or a window, has another fused kernel,
// which reaches so much of the peak and computes what the mask hides as well: BLOOM 560M on one
// H200.
constexpr double kMasked = 0.35;
constexpr double kMaskedBackward = 0.26;
// Bytes of a score that a learnt bias moves on its way there, and its gradient on its way back: T5
// large on one H200.
constexpr double kLearntForward = 9;
constexpr double kLearntBackward = 24;

// What a row takes longer, over its elements; a model that is given op by op may not say how many
// they are.
void add_per_row(EagerPasses& passes, double width) {
  if (width <= 0) return;
  passes.forward += passes.row / width;
  passes.backward += passes.row_backward / width;
}

EagerPasses map_passes(const Op& op) {
  EagerPasses out = kMaps;
  add_per_row(out, op.rows);
  return out;
}

EagerPasses norm_passes(const Op& op) {
  EagerPasses out = eager_passes(Function::layer_norm, false);
  // Norms of queries and keys: each head is a row, or all of them are.
  const double learnt = op.function == Function::layer_norm ? 2 : 1;
  const bool inside = op.split == Split::shard && op.parameters > 0;
  const double width = inside ? op.parameters / (2 * learnt) : op.columns;
  if (inside && width < op.columns / 2) out.row = out.row_backward = kRowOfHead;
  add_per_row(out, width);
  return out;
}

EagerPasses passes_of(const Model& model, const Op& op) {
  EagerPasses out = eager_passes(op.function, false);
  const bool images = std::holds_alternative<WideResnetConfig>(model.architecture);
  if (op.kind == OpKind::norm) return images ? map_passes(op) : norm_passes(op);
  if (op.function == Function::add) return eager_passes(op, false);
  if (op.function == Function::gelu_new || op.function == Function::gelu_twice)
    out = eager_passes(Function::gelu_tanh, false);
  if (op.function == Function::rotary) {
    // What of the heads is not turned is copied.
    const double whole = op.rows > 0 ? 2 * op.rows * op.columns : op.moved;
    out.forward = out.backward = kPassOfParts * (kTurned + std::max(0.0, whole / op.moved - 1));
  }
  if (!op.gated) return out;
  out.forward = kPassOfParts * kGated;
  out.backward = kPassOfParts * kGatedBackward;
  return out;
}

// Of the layers, those whose attention has a mask: T5's bias, ALiBi, a window.
double masked_layers(const Model& model, const Op& op) {
  if (op.learnt_bias || (op.writes_scores && op.kv_count != 1)) return 1;
  const auto* config = std::get_if<TransformerConfig>(&model.architecture);
  if (config == nullptr || config->window.size == 0 || config->window.size >= config->sequence)
    return 0;
  return 1 - static_cast<double>(config->window.full.size()) / config->layers;
}

}  // namespace

// Layers with and without a mask are one kind of unit: it takes what they take in the mean.
OpTime LibtorchKernels::flash_attention(const Op& op, const Sharding& s) const {
  const double masked = masked_layers(model(), op);
  if (masked <= 0) return FusedKernels::flash_attention(op, s);
  OpTime time = masked < 1 ? FusedKernels::flash_attention(op, s) : OpTime{};
  const double share = s.samples / s.context / s.tensor;
  const Flops work = op.forward * share;
  const FlopsPerSecond peak = device().peak_of(attention_dtype(job().precision));
  const Seconds kernel = device().efficiency.kernel;
  time.forward = (1 - masked) * time.forward + masked * (work / (peak * kMasked) + kernel);
  time.backward =
      (1 - masked) * time.backward + masked * (2.5 * work / (peak * kMaskedBackward) + 2 * kernel);
  if (!op.learnt_bias) return time;
  const double scores = op.count * op.rows * op.columns * share;
  time.forward += moving(kLearntForward * scores);
  time.backward += moving(kLearntBackward * scores);
  return time;
}

// Gradients of queries, keys and values that were computed together are joined.
OpTime LibtorchKernels::attention(const Op& op, const Sharding& s) const {
  const bool flash = job().attention == AttentionKernel::flash;
  OpTime time = flash ? flash_attention(op, s) : plain_attention(op, s);
  const double elements = op.saved * activation_share(op.split, s);
  time.backward += memory_time(device(), Bytes(2 * kPass * element_bytes() * elements));
  time.host += host_of_product(s);
  return time;
}

OpTime LibtorchKernels::convolution(const Op& op, const Sharding& s) const {
  const Product g = sharded_product(job(), op, s);
  const double slow = 1 + g.misaligned * (device().efficiency.misaligned - 1);
  const FlopsPerSecond rate =
      device().peak_of(product_format(job(), device()).dtype) * (kReachedByConvolution / slow);
  const double parameters = parameters_per_device(op, s);
  const double moved = element_bytes() * (op.moved * activation_share(op.split, s) + parameters);
  const Seconds pass = std::max(Flops(2 * g.m * g.n * g.k * g.count) / rate, moving(moved)) +
                       device().efficiency.kernel;
  const Seconds sum = moving(traits().cast_bytes * parameters);
  return {pass + sum, pass + sum, pass, host_of_product(s), {}};
}

OpTime LibtorchKernels::memory_bound(const Op& op, const Sharding& s) const {
  if (op.moved <= 0) return {};
  const EagerPasses passes = passes_of(model(), op);
  const double bytes = element_bytes() * eager_elements(op) * activation_share(op.split, s);
  return {memory_time(device(), Bytes(passes.forward * bytes)),
          memory_time(device(), Bytes(passes.backward * bytes)),
          {},
          {}};
}

void LibtorchKernels::add_around_product(const DeviceType& d, const Op& op, const Sharding&,
                                         const Product& g, OpTime& time) const {
  if (op.parameters <= op.inner * op.columns * op.count) return;
  time.backward += moving_time(d, kSumOfBias * element_bytes() * g.count * g.m * g.n);
}

// The host goes on while the device is behind, and waits for it at the end of a step only.
Seconds LibtorchKernels::layer_time(const UnitCost& device, const HostWork& host) const {
  HostWork rest = host;
  rest.total = std::max(Seconds(0), host.total - host.ahead);
  return FusedKernels::layer_time(device, rest);
}

}  // namespace plait
