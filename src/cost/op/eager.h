#pragma once

#include "base/units.h"
#include "model/model.h"

namespace plait {

// PyTorch that runs every primitive as a kernel of its own, on models as the Hugging Face library
// writes them. What a function then costs per element, measured on one H200 with PyTorch 2.11 and
// transformers 5.17 (docs/cost-model.md#eager).
struct EagerPasses {
  // Passes over a 2-byte tensor that take as long, at the bandwidth that memory-bound kernels
  // reach.
  double forward = 1;
  double backward = 1;
  double saved = 0;  // bytes kept for backward
  // Kernels, as the library's source dispatches them.
  double launches = 1;
  double launches_backward = 1;
  // Of a norm: elements more that a row takes as long as, however short it is.
  double row = 0;
  double row_backward = 0;
};

// Of a memory-bound op, per element of eager_elements(). `autocast`: the residual stream is fp32,
// matrix products are bf16, and functions that want fp32 convert.
EagerPasses eager_passes(Function function, bool autocast);

// The same of this op: rotary embedding of a part of each head cuts and joins whole heads, a
// parallel block adds twice, and norms have short or long rows.
EagerPasses eager_passes(const Op& op, bool autocast);

// Kernels that a product dispatches: one for each of its matrices, two for their gradients, sums
// for biases and for the gradients of a common input; under autocast conversions of weights,
// biases and of an input from the fp32 stream, and of their gradients.
struct Launches {
  double forward = 0;
  double backward = 0;
};
Launches product_launches(const Op& op, bool autocast);

// Elements that the table counts by: rows x columns of a norm, outputs of an activation, everything
// moved of the others.
double eager_elements(const Op& op);

}  // namespace plait
