#include "cost/eager.h"

#include "cost/framework.h"

namespace plait {

// Example: gelu_new is 0.5 x (1 + tanh(c (x + 0.044715 x^3))). Its eight kernels read and write 18
// tensors forward and 28 backward; it keeps x, the tanh, x / 2 and 1 + tanh: 8 bytes in bf16, and
// 14 under autocast, where all but x / 2 are fp32. Passes are scaled by 0.75, since such kernels
// reach 0.87 of the bandwidth and the table refers to the 0.65 of `Efficiency::memory`.
EagerKernels eager_kernels(Function function, bool autocast) {
  switch (function) {
    case Function::layer_norm:
      return autocast ? EagerKernels{4.6, 11.2, 4, 1} : EagerKernels{3.0, 8.2, 2, 1};
    case Function::rms_norm:
      return autocast ? EagerKernels{14.4, 42.6, 8, 7} : EagerKernels{20.5, 45.6, 6, 8};
    case Function::gelu_new:
      return autocast ? EagerKernels{33.6, 44.8, 14, 8} : EagerKernels{14.2, 21.7, 8, 8};
    case Function::gelu:
      return {2.2, 2.8, 2, 1};
    case Function::gelu_tanh:
      return {1.9, 2.5, 2, 1};
    case Function::quick_gelu:
      return {5.6, 10.8, 4, 3};
    case Function::relu:
      return {1.6, 2.3, 0, 1};  // keeps its output, which the next product keeps anyway
    case Function::silu:
      return {4.0, 7.0, 6, 2};
    case Function::rotary:
      return autocast ? EagerKernels{15.3, 17.5, 0, 12} : EagerKernels{11.2, 14.5, 0, 12};
    case Function::add:
      return autocast ? EagerKernels{1.9, 2.2, 0, 1} : EagerKernels{0.75, 0.75, 0, 1};
    case Function::other:
      break;
  }
  return {0.75, 0.75, 0, 1};
}

double eager_elements(const Op& op) {
  switch (op.function) {
    case Function::layer_norm:
    case Function::rms_norm:
      return op.rows * op.columns;
    case Function::gelu:
    case Function::gelu_tanh:
    case Function::gelu_new:
    case Function::quick_gelu:
    case Function::relu:
    case Function::silu:
      return op.moved - op.saved;
    case Function::rotary:
    case Function::add:
    case Function::other:
      break;
  }
  return op.moved;
}

bool is_autocast(const Job& job) {
  return job.framework == Framework::eager && job.precision != Precision::pure_bf16 &&
         job.precision != Precision::fp32 && job.precision != Precision::tf32;
}

double stream_bytes(const Job& job) {
  return is_autocast(job) ? 4 : activation_bytes(job.precision);
}

double eager_loss_share(const Job& job, const Model& model) {
  return job.precision == Precision::pure_bf16 && !model.causal ? 0.5 : 1;
}

}  // namespace plait
