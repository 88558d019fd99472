#include "cost/op/eager_kernels.h"

#include <algorithm>

#include "cost/comm/overlap.h"
#include "cost/op/eager.h"

namespace plait {
namespace {

// The library's flash kernels, on short sequences: a head counts as at least so wide, passes over
// queries' elements, and small kernels before and after the large one (20 shapes of ten families on
// one H200).
constexpr double kLeastEagerHead = 80;
constexpr double kReadForward = 1.5;
constexpr double kReadBackward = 3.5;
constexpr double kBackwardKernels = 4;
// The three below are from the same H200: the device's time in 24 whole steps of ten families,
// split into products, attention and the rest (docs/cost-model.md#eager). Backward of concatenated
// queries, keys and values concatenates their gradients; of separate ones it adds them up. Passes
// over them.
constexpr double kConcatenation = 8;
// Of `kernel`: many of the kernels of a function that is written out work on one value a row.
constexpr double kShortKernel = 0.75;
// Of the host's time for a checkpoint, what is spent in the forward pass.
constexpr double kCheckpointForward = 0.43;

}  // namespace

OpTime EagerKernels::flash_attention(const Op& op, const Sharding& s) const {
  OpTime time = flash_kernel(op, s, kLeastEagerHead);
  const double heads = op.forward.value / (4 * op.rows * op.columns * op.inner);
  const double bytes =
      element_bytes() * heads * op.rows * op.inner * s.samples / s.context / s.tensor;
  time.forward += moving(kReadForward * bytes);
  time.backward += moving(kReadBackward * bytes) + kBackwardKernels * device().efficiency.kernel;
  return time;
}

// Scores are multiplied, added to, normalised, converted and multiplied in kernels of their own
// (fitted on Falcon's, T5's and BLOOM's steps on one H200; docs/cost-model.md#eager).
OpTime EagerKernels::score_attention(const Op& op, const Sharding& s) const {
  constexpr double kForwardBytes = 22;  // of a score
  constexpr double kBackwardBytes = 37;
  constexpr double kBiasForward = 8;  // and where the bias is learnt (T5)
  constexpr double kBiasBackward = 20;
  constexpr double kProducts = 0.6;  // of the peak
  constexpr double kNarrowProducts = 0.2;
  constexpr double kKernels = 12;
  const DeviceType& d = device();
  const double scores = op.count * op.rows * op.columns * s.samples / s.context / s.tensor;
  const FlopsPerSecond rate = op.scores_in_16_bits
                                  ? d.peak_of(attention_dtype(job().precision)) * kNarrowProducts
                                  : d.peak_of(DType::fp32) * kProducts;
  const Seconds product = Flops(2 * scores * op.inner) / rate;
  const double forward = kForwardBytes + (op.learnt_bias ? kBiasForward : 0);
  const double backward = kBackwardBytes + (op.learnt_bias ? kBiasBackward : 0);
  OpTime time{2 * product + memory_time(d, Bytes(forward * scores), kKernels),
              4 * product + memory_time(d, Bytes(backward * scores), kKernels),
              {},
              {},
              {}};
  time.host_forward = kKernels * traits().host_kernel;
  time.host = 2 * time.host_forward;
  return time;
}

OpTime EagerKernels::attention(const Op& op, const Sharding& s) const {
  const bool flash = job().attention == AttentionKernel::flash;
  OpTime time = op.writes_scores ? score_attention(op, s)
                : flash          ? flash_attention(op, s)
                                 : plain_attention(op, s);
  const bool concatenated = op.matrices == 1;
  const double elements = op.saved * activation_share(op.split, s);
  time.backward += moving((concatenated ? kConcatenation : 1) * element_bytes() * elements);
  launch(s, {1, concatenated ? 2.0 : 1.0}, time);
  return time;
}

void EagerKernels::launch(const Sharding& s, const Launches& launches, OpTime& time) const {
  const Seconds block = host_of_product(s);
  time.host_forward += block / 2 + launches.forward * traits().host_kernel;
  time.host += block + (launches.forward + launches.backward) * traits().host_kernel;
}

OpTime EagerKernels::memory_bound(const Op& op, const Sharding& s) const {
  const EagerPasses passes = eager_passes(op, is_autocast());
  const double bytes = element_bytes() * eager_elements(op) * activation_share(op.split, s);
  const double launches = passes.launches + passes.launches_backward;
  return {memory_time(device(), Bytes(passes.forward * bytes), kShortKernel * passes.launches),
          memory_time(device(), Bytes(passes.backward * bytes),
                      kShortKernel * passes.launches_backward),
          {},
          launches * traits().host_kernel,
          passes.launches * traits().host_kernel};
}

// Under autocast the input is converted for each matrix if it comes from the fp32 stream, and the
// weights are; a bias' gradient is a sum over rows. Passes over the tensors, timed one by one on
// the same H200.
void EagerKernels::add_around_product(const DeviceType& d, const Op& op, const Sharding& s,
                                      const Product& g, OpTime& time) const {
  constexpr double kBiasPasses = 2.2;
  constexpr double kCastForward = 2.8;
  constexpr double kCastBackward = 3.8;
  if (op.parameters > op.inner * op.columns * op.count)
    time.backward += moving_time(d, kBiasPasses * element_bytes() * g.count * g.m * g.n);
  if (is_autocast() && op.split != Split::row) {
    const double input = 2 * op.matrices * g.count * g.m * g.k;
    time.forward += moving_time(d, kCastForward * input);
    time.backward += moving_time(d, kCastBackward * input);
  }
  time.host = Seconds(0);
  launch(s, product_launches(op, is_autocast()), time);
}

// Under autocast a product that reads the fp32 stream keeps a converted copy for each of its
// matrices.
double EagerKernels::kept_bytes(const Op& op) const {
  if (op.function == Function::rotary) return element_bytes() * op.rows * op.inner;
  if (op.saved == 0) return 0;
  if (op.kind == OpKind::matmul && is_autocast()) {
    const double copies = op.split == Split::column    ? op.matrices
                          : op.split == Split::experts ? 2  // in fp32
                                                       : 1;
    return element_bytes() * op.saved * copies;
  }
  if (op.kind == OpKind::matmul) return element_bytes() * op.saved;
  if (op.function == Function::other || op.function == Function::add)
    return element_bytes() * op.saved;
  return eager_passes(op, is_autocast()).saved * element_bytes() / 2 * eager_elements(op);
}

double EagerKernels::loss_share() const {
  if (model().causal) return 1;
  if (job().precision == Precision::pure_bf16) return 0.5;
  return is_autocast() ? 5.0 / 6 : 1;
}

// When the last kernel of a layer is done: none starts before it is launched, and launches run
// ahead as far as the device lags behind.
//   max(forward + backward of the device, host forward + device backward, host forward + backward)
// Recompute launches forward again; what it takes besides is spent in both passes.
Seconds EagerKernels::layer_time(const UnitCost& device, const HostWork& host) const {
  Seconds forward = host.forward;
  Seconds backward = host.total - host.forward;
  if (host.recomputed) {
    backward += forward + (1 - kCheckpointForward) * traits().host_checkpoint;
    forward += kCheckpointForward * traits().host_checkpoint;
  }
  const double last = std::max(device.backward_total(), backward - host.ahead).value;
  return Seconds(
      beside(device.total().value, forward.value + last, traits().host_overlap_exponent));
}

}  // namespace plait
