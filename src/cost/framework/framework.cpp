#include "cost/framework/framework.h"

#include <algorithm>

namespace plait {
namespace {

bool is_single(Precision precision) {
  return precision == Precision::fp32 || precision == Precision::tf32;
}

bool is_pure(const Job& job) {
  return job.precision == Precision::pure_bf16 || (job.pure_states && !is_single(job.precision));
}

double optimizer_slots(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::adam:
    case Optimizer::adam8bit:
      return 2;
    case Optimizer::momentum:
      return 1;
    case Optimizer::sgd:
      return 0;
  }
  return 0;
}

// Of one value of the optimizer's state, which usually has so many bytes.
double slot_bytes(Optimizer optimizer, double usual) {
  constexpr double kBlock = 256;  // values that share a scale of 4 bytes
  return optimizer == Optimizer::adam8bit ? 1 + 4 / kBlock : usual;
}

StateBytes mixed_state(const Job& job, bool sharded_weights) {
  const MixedState& mixed = job.framework.mixed;
  const double moments = optimizer_slots(job.optimizer) * slot_bytes(job.optimizer, mixed.moment);
  StateBytes state{.weight = 2,
                   .gradient = mixed.gradient,
                   .optimizer = mixed.master + moments + mixed.step_gradient,
                   .sharded_gradient = mixed.sharded_gradient,
                   .gathered = mixed.gathered};
  state.sent_gradient = mixed.sent_gradient > 0 ? mixed.sent_gradient : mixed.gradient;
  // Weights beside adapters are not updated: they stay in the 16 bits that they are read in, or
  // in 4.
  const bool fp32 = mixed.fp32_weights == Fp32Weights::always ||
                    (mixed.fp32_weights == Fp32Weights::sharded && sharded_weights);
  if (fp32 && !job.adapters) {
    state.weight = 4;
    state.optimizer = moments + mixed.step_gradient;
  }
  return state;
}

}  // namespace

StateBytes state_bytes(const Job& job, bool sharded_weights) {
  const double slots = optimizer_slots(job.optimizer);
  StateBytes state;
  if (is_single(job.precision)) {
    const double moments = slots * slot_bytes(job.optimizer, 4);
    state = {.weight = 4, .gradient = 4, .optimizer = moments, .gathered = 4, .sent_gradient = 4};
  } else if (is_pure(job)) {
    state = {.weight = 2, .gradient = 2, .optimizer = slots * slot_bytes(job.optimizer, 2)};
  } else {
    state = mixed_state(job, sharded_weights);
  }
  if (job.gradient_bytes > 0) state.gradient = state.sent_gradient = job.gradient_bytes;
  if (job.reduce_bytes > 0) state.sent_gradient = job.reduce_bytes;
  return state;
}

double optimizer_traffic(const Job& job) {
  const double slots = optimizer_slots(job.optimizer);
  // In 16 bits the step is bound by its conversions: 18 bytes take as long as the 14 it moves.
  if (is_pure(job)) return 10 + 2 * slots * slot_bytes(job.optimizer, 2);
  const MixedState& mixed = job.framework.mixed;
  return 4 + 2 * mixed.master + 2 * slots * slot_bytes(job.optimizer, mixed.moment) +
         job.framework.traits.clip_bytes;
}

double host_update_traffic(const Job& job) {
  const double moments = optimizer_slots(job.optimizer) * slot_bytes(job.optimizer, 4);
  // Gradient and master read, master written, moments read and written, the weight written.
  return 4 + 8 + 2 * moments + activation_bytes(job.precision);
}

Bytes usable_memory(const Job& job, const DeviceType& device) {
  const Bytes left =
      device.memory - (job.reserved > Bytes(0) ? job.reserved : device.memory * job.reserve);
  return job.memory_limit > Bytes(0) ? std::min(left, job.memory_limit) : left;
}

DType attention_dtype(Precision precision) {
  const DType dtype = compute_dtype(precision);
  return dtype == DType::fp8 ? DType::bf16 : dtype;
}

double activation_bytes(Precision precision) { return is_single(precision) ? 4 : 2; }

// Weights beside adapters are 16-bit ones: there is nothing to cast, and what runs between the
// layers has their format.
bool is_autocast(const Job& job) {
  return job.framework.autocast && !is_pure(job) && !is_single(job.precision) && !job.adapters;
}

double stream_bytes(const Job& job) {
  return is_autocast(job) ? 4 : activation_bytes(job.precision);
}

FrameworkTraits traits_of(const Job& job) {
  FrameworkTraits traits = job.framework.traits;
  if (job.framework.autocast && !is_autocast(job)) traits.cast_bytes = 0;
  if (job.logit_bytes > 0) traits.logit_bytes = job.logit_bytes;
  if (job.flash_kernel) traits.flash_kernel = *job.flash_kernel;
  if (job.graph_capture)
    for (Seconds* host :
         {&traits.host_block, &traits.host_split, &traits.host_separate_softmax,
          &traits.host_checkpoint, &traits.host_kernel, &traits.host_experts, &traits.host_head,
          &traits.host_embedding, &traits.host_gather, &traits.host_update})
      *host = Seconds(0);
  if (!job.overlap) traits.tensor_exposed = traits.tensor_backward = traits.data_exposed = 1;
  return traits;
}

}  // namespace plait
