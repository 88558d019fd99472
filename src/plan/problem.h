#pragma once

#include <optional>
#include <string>

#include "base/dtype.h"
#include "cluster/cluster.h"
#include "model/model.h"
#include "plan/framework.h"
#include "profile/profile.h"

namespace plait {

// What is stored per parameter and what the matrix products run in.
enum class Precision {
  fp32,       // everything in fp32
  tf32,       // fp32 storage, matrix products on tensor cores
  fp16,       // fp16 compute, fp32 master weights
  bf16,       // bf16 compute, fp32 master weights
  pure_bf16,  // weights, gradients and optimizer state in bf16, no master copy
  fp8,        // fp8 matrix products (one scale a tensor), bf16 storage, fp32 master weights
  fp8_row,    // the same with a scale for every row or block: slower products
  fp4,        // NVFP4 matrix products, else as fp8
};
DType compute_dtype(Precision precision);  // of matrix products
enum class Optimizer {
  adam,
  sgd,
  momentum,
  adam8bit,  // Adam whose two moments are kept in blocks of 8-bit values
};
enum class AttentionKernel { flash, plain };
// What the user wants trained; the part of the input that is neither model nor machine.
struct Job {
  int global_batch = 0;  // samples per optimizer step
  Precision precision = Precision::bf16;
  Optimizer optimizer = Optimizer::adam;
  AttentionKernel attention = AttentionKernel::flash;
  // Generation of the flash kernels; nothing = the framework's.
  std::optional<FlashKernel> flash_kernel;
  // Whose execution is predicted; decides fused kernels, overlap, per-op overhead and what is kept
  // in memory. Readers take it from the catalogue.
  Framework framework;
  // False: the framework's overlap of communication with compute is switched off.
  bool overlap = true;
  // True: steps are captured and replayed (CUDA graphs); the host launches nothing.
  bool graph_capture = false;
  // Devices over which ZeRO and FSDP cut states, the replicas of which sum their gradients (hybrid
  // sharding), where it divides the copies of a parameter; 0 = over all of them.
  int zero_group = 0;
  // True: only small adapters are trained (LoRA); no gradients, states or updates of the weights.
  bool adapters = false;
  // Columns of the first, rows of the second matrix of each adapter; 0 = not known: adapters then
  // need neither memory nor an update.
  int adapter_rank = 0;
  // True: the weights that have an adapter of known rank are kept in 4 bits (QLoRA).
  bool four_bit_weights = false;
  // True: weights, gradients and optimizer state are kept in 16 bits without a master copy,
  // whatever products multiply in; pure_bf16 says so by itself.
  bool pure_states = false;
  int gradient_bytes = 0;       // of an accumulated gradient; 0 = as the framework does
  int reduce_bytes = 0;         // of a gradient that is summed over replicas; 0 = likewise
  int logit_bytes = 0;          // per logit at the peak of the loss; 0 = as the framework does
  int vocabulary_multiple = 0;  // the table is padded to a multiple; 0 = as the framework does
  double reserve = 0.06;        // fraction of device memory left to the driver and to fragmentation
  Bytes reserved;               // the same as a size, which then counts instead; 0 = not said
  Bytes memory_limit;  // what a plan may use of each device at most; 0 = all but the reserve
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
