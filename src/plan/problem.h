#pragma once

#include <string>

#include "base/dtype.h"
#include "cluster/cluster.h"
#include "model/model.h"
#include "profile/profile.h"

namespace plait {

// What is stored per parameter and what the matrix products run in.
enum class Precision {
  fp32,       // everything in fp32
  tf32,       // fp32 storage, matrix products on tensor cores
  fp16,       // fp16 compute, fp32 master weights
  bf16,       // bf16 compute, fp32 master weights
  pure_bf16,  // weights, gradients and optimizer state in bf16, no master copy
  fp8,        // fp8 matrix products, bf16 storage, fp32 master weights
};
enum class Optimizer { adam, sgd, momentum };
enum class AttentionKernel { flash, plain };
// Whose execution is predicted; decides fused kernels, overlap and per-op overhead
// (cost/framework).
enum class Framework { megatron, deepspeed, fsdp, jax, eager };

// What the user wants trained; the part of the input that is neither model nor machine.
struct Job {
  int global_batch = 0;  // samples per optimizer step
  Precision precision = Precision::bf16;
  Optimizer optimizer = Optimizer::adam;
  AttentionKernel attention = AttentionKernel::flash;
  Framework framework = Framework::megatron;
  double reserve = 0.06;  // fraction of device memory left to the driver and to fragmentation
  friend bool operator==(const Job&, const Job&) = default;
};

// Everything a search reads. Immutable once loaded; shared by const reference across threads.
struct Problem {
  Model model;
  Cluster cluster;
  Profile profile;
  Job job;
  friend bool operator==(const Problem&, const Problem&) = default;
};

}  // namespace plait
