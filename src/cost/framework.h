#pragma once

#include "base/units.h"
#include "plan/problem.h"

namespace plait {

// Bytes that training keeps for each parameter.
struct StateBytes {
  double weight = 2;
  double gradient = 2;
  double optimizer = 12;  // master copy included
};
StateBytes state_bytes(const Job& job);

DType compute_dtype(Precision precision);
double activation_bytes(Precision precision);

// What differs between the programs that execute a plan; few constants each, calibrated on runs of
// that program (docs/cost-model.md#frameworks).
struct FrameworkTraits {
  Seconds host_per_op = Seconds(20e-6);  // host time to launch one op forward; twice that backward
  double host_tensor = 0.14;             // relative extra when collectives are launched too
  double loss_bytes = 30;       // traffic per logit in the loss, forward and backward together
  double traffic = 1;           // element-wise traffic relative to fused kernels
  double data_exposed = 1;      // part of the gradient reduction that compute does not hide
  double tensor_exposed = 1;    // part of tensor-parallel communication that compute does not hide
  double optimizer_bytes = 28;  // traffic per parameter of the optimizer step
  BytesPerSecond send_limit =
      BytesPerSecond(0);  // of one device, when the program cannot use the link; 0 = none
};
const FrameworkTraits& traits_of(Framework framework);

}  // namespace plait
