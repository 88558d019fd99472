#include "cost/framework.h"

namespace plait {

StateBytes state_bytes(const Job& job) {
  const bool keeps_moments = job.optimizer == Optimizer::adam;
  const bool keeps_velocity = job.optimizer == Optimizer::momentum;
  const double slots = keeps_moments ? 2 : keeps_velocity ? 1 : 0;
  switch (job.precision) {
    case Precision::fp32:
    case Precision::tf32:
      return {.weight = 4, .gradient = 4, .optimizer = 4 * slots};
    case Precision::pure_bf16:
      return {.weight = 2, .gradient = 2, .optimizer = 2 * slots};
    case Precision::fp16:
    case Precision::bf16:
    case Precision::fp8: {
      // Megatron accumulates gradients in fp32; the others in the weights' own type.
      const double gradient = job.framework == Framework::megatron ? 4 : 2;
      return {.weight = 2, .gradient = gradient, .optimizer = 4 + 4 * slots};
    }
  }
  return {};
}

DType compute_dtype(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return DType::fp32;
    case Precision::tf32:
      return DType::tf32;
    case Precision::fp16:
      return DType::fp16;
    case Precision::bf16:
    case Precision::pure_bf16:
      return DType::bf16;
    case Precision::fp8:
      return DType::fp8;
  }
  return DType::bf16;
}

double activation_bytes(Precision precision) {
  return precision == Precision::fp32 || precision == Precision::tf32 ? 4 : 2;
}

const FrameworkTraits& traits_of(Framework framework) {
  static const FrameworkTraits megatron{
      .host_per_op = Seconds(12e-6), .data_exposed = 0.2, .tensor_exposed = 0.5};
  static const FrameworkTraits deepspeed{.host_per_op = Seconds(60e-6)};
  static const FrameworkTraits fsdp{.host_per_op = Seconds(24e-6)};
  static const FrameworkTraits jax{.host_per_op = Seconds(2e-6), .data_exposed = 0.2};
  static const FrameworkTraits eager{.host_per_op = Seconds(24e-6), .traffic = 1.5};
  switch (framework) {
    case Framework::megatron:
      return megatron;
    case Framework::deepspeed:
      return deepspeed;
    case Framework::fsdp:
      return fsdp;
    case Framework::jax:
      return jax;
    case Framework::eager:
      return eager;
  }
  return megatron;
}

}  // namespace plait
