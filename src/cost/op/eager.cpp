#include "cost/op/eager.h"

namespace plait {

// Example: gelu_new is 0.5 x (1 + tanh(c (x + 0.044715 x^3))). Its eight kernels read and write 18
// tensors forward and 28 backward, in eleven kernels; it keeps x, the tanh, x / 2 and 1 + tanh: 8
// bytes in bf16, and 14 under autocast, where all but x / 2 are fp32. Passes are what 16,384 rows
// of 4,096 take longer than rows of 1,024, scaled by 0.75, since such kernels reach 0.87 of the
// bandwidth and the table refers to the 0.65 of `Efficiency::memory`; the rest is `kernel` for each
// launch.
EagerPasses eager_passes(Function function, bool autocast) {
  switch (function) {
    case Function::layer_norm:
      return autocast ? EagerPasses{3.7, 9.0, 4, 1, 1, 1000, 2000}
                      : EagerPasses{1.9, 3.7, 2, 1, 1, 1600, 6000};
    case Function::rms_norm:
      return autocast ? EagerPasses{12.6, 36.0, 8, 6, 14} : EagerPasses{18.0, 39.0, 6, 8, 16};
    case Function::gelu_new:
      return autocast ? EagerPasses{33.5, 44.0, 14, 10, 15} : EagerPasses{12.5, 19.0, 8, 8, 11};
    case Function::gelu_twice:  // 21 and 44 tensors; it keeps x
      return {14.6, 29.9, 2, 9, 18};
    case Function::gelu:
      return {2.2, 2.9, 2};
    case Function::gelu_tanh:
      return {1.9, 2.5, 2};
    case Function::quick_gelu:
      return {5.1, 9.9, 4, 3, 5};
    case Function::relu:
      return {1.7, 2.4, 0};  // keeps its output, which the next product keeps anyway
    case Function::silu:
      return {4.2, 7.3, 6, 2, 3};
    case Function::rotary:
      return autocast ? EagerPasses{17.0, 20.0, 0, 12, 22} : EagerPasses{14.5, 19.5, 0, 10, 16};
    case Function::add:
      return autocast ? EagerPasses{2.0, 2.4, 0, 1, 2} : EagerPasses{0.8, 0.8, 0, 1, 1};
    case Function::other:
      break;
  }
  return {0.75, 0.75, 0};
}

namespace {

// Joining the turned and the other features of queries and keys, and cutting their gradients:
// passes over whole heads, and kernels.
constexpr EagerPasses kPartial{2.3, 8.0, 0, 2, 6};
constexpr EagerPasses kPartialAutocast{5.0, 12.0, 0, 2, 8};

// The four below: measured on the H200 of the table above (docs/cost-model.md#eager).
// Of a norm of queries and keys: its rows are short, and under autocast what follows it is fp32.
constexpr double kShortRows = 1.2;
constexpr double kShortRowsAutocast = 1.7;
// Of an RMS norm whose scale is applied in fp32, relative to one that converts first.
constexpr double kWideScale = 1.15;
constexpr double kWideSaved = 8;

// The product of a gated activation.
constexpr EagerPasses kGate{2.1, 4.4, 4, 1, 2};

}  // namespace

EagerPasses eager_passes(const Op& op, bool autocast) {
  EagerPasses kernels = eager_passes(op.function, autocast);
  if (op.function == Function::rotary && op.rows > 0 && op.moved > 0) {
    const EagerPasses& partial = autocast ? kPartialAutocast : kPartial;
    const double whole = op.rows * op.columns / op.moved;
    kernels.forward += partial.forward * whole;
    kernels.backward += partial.backward * whole;
    kernels.launches += partial.launches;
    kernels.launches_backward += partial.launches_backward;
  }
  if (op.function == Function::add) {
    // Two sums of three tensors each where a fused kernel would read three and write one.
    const double sums = op.branches;
    const double moved = 3 * sums / (sums + 2);
    kernels.forward *= moved;
    kernels.backward *= moved;
    kernels.launches *= sums;
    kernels.launches_backward *= sums;
  }
  // silu is timed with its gate.
  if (op.gated && op.function != Function::silu) {
    kernels.forward += kGate.forward;
    kernels.backward += kGate.backward;
    kernels.saved += kGate.saved;
    kernels.launches += kGate.launches;
    kernels.launches_backward += kGate.launches_backward;
  }
  if (op.kind == OpKind::norm && op.columns > 0) {
    kernels.forward += kernels.row / op.columns;
    kernels.backward += kernels.row_backward / op.columns;
    const bool inside = op.split == Split::shard;
    const bool wide = op.scale_in_fp32 && op.function == Function::rms_norm;
    const double slow = (inside ? (autocast ? kShortRowsAutocast : kShortRows) : 1.0) *
                        (wide && !autocast ? kWideScale : 1.0);
    kernels.forward *= slow;
    kernels.backward *= slow;
    if (inside && autocast && op.function == Function::rms_norm) kernels.saved = 6;
    if (wide) kernels.saved = kWideSaved;
    if (op.shares_input) kernels.saved = 0;
  }
  return kernels;
}

Launches product_launches(const Op& op, bool autocast) {
  const double n = op.matrices;
  const double bias = op.parameters > op.inner * op.columns * op.count ? n : 0;
  Launches launches{n, 2 * n + bias + (n - 1)};
  if (!autocast) return launches;
  const double conversions = n + bias + (op.split != Split::row ? n : 0);
  launches.forward += conversions;
  launches.backward += conversions;
  return launches;
}

double eager_elements(const Op& op) {
  if (is_activation(op.function)) return op.moved - op.saved;
  const bool norm = op.function == Function::layer_norm || op.function == Function::rms_norm;
  return norm ? op.rows * op.columns : op.moved;
}

}  // namespace plait
