#pragma once

#include "base/units.h"
#include "model/model.h"
#include "plan/problem.h"

namespace plait {

// PyTorch that runs every primitive as a kernel of its own, on models as the Hugging Face library
// writes them. What a function then costs per element, measured on one H200 with PyTorch 2.11 and
// transformers 5.17 (docs/cost-model.md#eager).
struct EagerKernels {
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
EagerKernels eager_kernels(Function function, bool autocast);

// The same of this op: rotary embedding of a part of each head cuts and joins whole heads, a
// parallel block adds twice, and norms have short or long rows.
EagerKernels eager_kernels(const Op& op, bool autocast);

// Kernels that a product dispatches: one for each of its matrices, two for their gradients, sums
// for biases and for the gradients of a common input; under autocast conversions of weights,
// biases and of an input from the fp32 stream, and of their gradients.
struct Launches {
  double forward = 0;
  double backward = 0;
};
Launches product_launches(const Op& op, bool autocast);

// Whether attention runs as separate kernels, because a fused one does not take what is added to
// the scores (T5's bias, ALiBi, falcon's mask with one key for all heads).
bool computes_scores(const Job& job, const Op& op);

// Whether those multiply in 16 bits: models that write attention out themselves (BLOOM, MPT) do,
// PyTorch's stand-in for its fused kernels multiplies in fp32.
bool multiplies_scores_in_16_bits(const Op& op);

// Elements that the table counts by: rows x columns of a norm, outputs of an activation, everything
// moved of the others.
double eager_elements(const Op& op);

// Whether the job's weights are fp32 and converted for every product.
bool is_autocast(const Job& job);

// Of an element that blocks hand on: 4 under autocast, else as computed with.
double stream_bytes(const Job& job);

// Traffic and memory of a loss relative to that of a causal model: masked models do not convert
// their logits to fp32, and where autocast does they keep no copy (10 bytes instead of 12).
double eager_loss_share(const Job& job, const Model& model);

}  // namespace plait
