#include "cost/framework/framework.h"

namespace plait {
namespace {

bool is_single(Precision precision) {
  return precision == Precision::fp32 || precision == Precision::tf32;
}

double optimizer_slots(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::adam:
      return 2;
    case Optimizer::momentum:
      return 1;
    case Optimizer::sgd:
      return 0;
  }
  return 0;
}

StateBytes mixed_state(const Job& job, bool sharded_weights) {
  const double slots = optimizer_slots(job.optimizer);
  const MixedState& mixed = job.framework.mixed;
  StateBytes state{.weight = 2,
                   .gradient = mixed.gradient,
                   .optimizer = 4 + 4 * slots + mixed.step_gradient,
                   .sharded_gradient = mixed.sharded_gradient,
                   .gathered = mixed.gathered};
  state.sent_gradient = mixed.sent_gradient > 0 ? mixed.sent_gradient : mixed.gradient;
  const bool fp32 = mixed.fp32_weights == Fp32Weights::always ||
                    (mixed.fp32_weights == Fp32Weights::sharded && sharded_weights);
  if (fp32) {
    state.weight = 4;
    state.optimizer = 4 * slots + mixed.step_gradient;
  }
  return state;
}

}  // namespace

StateBytes state_bytes(const Job& job, bool sharded_weights) {
  const double slots = optimizer_slots(job.optimizer);
  StateBytes state;
  if (is_single(job.precision)) {
    state = {.weight = 4, .gradient = 4, .optimizer = 4 * slots, .gathered = 4, .sent_gradient = 4};
  } else if (job.precision == Precision::pure_bf16) {
    state = {.weight = 2, .gradient = 2, .optimizer = 2 * slots};
  } else {
    state = mixed_state(job, sharded_weights);
  }
  if (job.gradient_bytes > 0) state.gradient = state.sent_gradient = job.gradient_bytes;
  if (job.adapters) state.gradient = state.optimizer = state.sharded_gradient = 0;
  return state;
}

double optimizer_traffic(const Job& job) {
  const double slots = optimizer_slots(job.optimizer);
  // In 16 bits the step is bound by its conversions: 18 bytes take as long as the 14 it moves.
  if (job.precision == Precision::pure_bf16) return 10 + 4 * slots;
  return 12 + 8 * slots + job.framework.traits.clip_bytes;
}

DType attention_dtype(Precision precision) {
  const DType dtype = compute_dtype(precision);
  return dtype == DType::fp8 ? DType::bf16 : dtype;
}

double activation_bytes(Precision precision) { return is_single(precision) ? 4 : 2; }

bool is_autocast(const Job& job) {
  return job.framework.autocast && job.precision != Precision::pure_bf16 &&
         !is_single(job.precision);
}

double stream_bytes(const Job& job) {
  return is_autocast(job) ? 4 : activation_bytes(job.precision);
}

FrameworkTraits traits_of(const Job& job) {
  FrameworkTraits traits = job.framework.traits;
  if (job.framework.autocast && !is_autocast(job)) traits.cast_bytes = 0;
  if (job.logit_bytes > 0) traits.logit_bytes = job.logit_bytes;
  if (!job.overlap) traits.tensor_exposed = traits.tensor_backward = traits.data_exposed = 1;
  return traits;
}

}  // namespace plait
