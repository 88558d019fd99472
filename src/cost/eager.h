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
  double saved = 0;     // bytes kept for backward
  double launches = 1;  // kernels, forward
};

// Of a memory-bound op, per element of eager_elements(). `autocast`: the residual stream is fp32,
// matrix products are bf16, and functions that want fp32 convert.
EagerKernels eager_kernels(Function function, bool autocast);

// Elements that the table counts by: rows x columns of a norm, outputs of an activation, everything
// moved of the others.
double eager_elements(const Op& op);

// Whether the job's weights are fp32 and converted for every product.
bool is_autocast(const Job& job);

// Of an element that blocks hand on: 4 under autocast, else as computed with.
double stream_bytes(const Job& job);

// Traffic and memory of a loss relative to that of a causal model: masked models do not convert
// their logits to fp32 unless autocast does.
double eager_loss_share(const Job& job, const Model& model);

}  // namespace plait
