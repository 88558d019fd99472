#pragma once

#include <string>

#include "base/units.h"

namespace plait {

// How a program runs the primitives of a model.
enum class KernelStyle {
  fused,     // norms, activations, softmax and additions are kernels that move each tensor once
  eager,     // every primitive is a kernel of its own, as PyTorch runs it (cost/op/eager.h)
  libtorch,  // PyTorch's kernels, one for each function (cost/op/libtorch_kernels.h)
};

// Generation of a program's flash attention kernels: a property of the software, not of the device.
enum class FlashKernel {
  first,   // FlashAttention 1 and Triton's kernels of 2022 and 2023
  second,  // FlashAttention 2, which is also PyTorch's scaled_dot_product_attention
  native,  // written for the device's architecture: FlashAttention 3, cuDNN; on Ampere the second
};

// How fast a program executes a plan, and what it keeps in memory. The constants are fitted on runs
// of that program on all its device types together (docs/cost-model.md#frameworks). The defaults
// are those of a program that launches its work for free and hides no communication.
struct FrameworkTraits {
  // Host: time to launch the work of a GPT block forward and backward, and what adds to it.
  Seconds host_block;
  double host_tensor = 0;         // relative, when collectives are launched too
  Seconds host_split;             // per product with fewer tiles than multiprocessors
  Seconds host_separate_softmax;  // when the fused softmax cannot be used
  double host_recompute = 0;      // relative, with full recompute
  Seconds host_checkpoint;        // and per block that is recomputed
  Seconds host_kernel;            // per kernel, where none are fused
  Seconds host_experts;           // of a mixture of experts
  Seconds host_head;              // of the output layer; never hidden
  Seconds host_embedding;         // of the input layer; never hidden
  Seconds host_gather;            // of a block whose weights are gathered, for each pass over it
  Seconds host_update;            // of a block's tensors in the optimizer step; never hidden
  // Exponent p of (host^p + device^p)^(1/p), the time of a layer: the larger, the sharper the
  // corner where the host becomes slower than the device.
  double host_overlap_exponent = 6;

  // Kernels.
  KernelStyle kernels = KernelStyle::fused;
  double traffic = 1;         // of memory-bound kernels, relative to well-fused ones
  double expert_traffic = 0;  // passes over the routed tokens to sort, pad and combine them
  double loss_bytes = 20;     // traffic per logit in the loss, forward and backward together
  double cast_bytes = 0;      // traffic per parameter, forward and again backward, to cast weights
  double clip_bytes = 0;      // traffic per parameter of the optimizer step for norm and clipping
  FlashKernel flash_kernel = FlashKernel::second;
  bool fused_softmax = false;  // has a fused softmax for plain attention
  // Passes over the scores, 2 bytes each, that separate kernels add where it cannot be used.
  double softmax_forward = 8;
  double softmax_backward = 4;
  bool pads_vocabulary = false;  // to a multiple of 128 times the tensor degree
  // Selective recompute repeats every second op, not attention.
  bool selective_recomputes_every_other_op = false;

  // Overlap (cost/comm/overlap.h): what a second of communication costs that runs beside compute; 0
  // = nothing, 1 = the framework does not overlap it. Of tensor parallelism beside the product that
  // it belongs to, and, in backward, beside the weight gradient; of gradients beside the backward
  // pass of the last micro-batch; of experts beside their layer; of context beside its attention.
  double tensor_exposed = 1;
  double tensor_backward = 1;
  Seconds tensor_skew;           // waiting for the slowest of two devices, per block
  double tensor_skew_power = 1;  // growth with log2 of the devices
  double data_exposed = 1;
  double expert_exposed = 1;
  double context_exposed = 1;
  // Of weights that are gathered for every layer (ZeRO-3) beside the neighbouring layer's compute,
  // as far as they pass the links inside a node: the kernels that move them take multiprocessors.
  double gather_exposed = 0;
  // Collectives of a block's parameters, where each tensor is reduced and gathered by itself; 0 =
  // those of many blocks go together.
  double sync_pieces = 0;
  BytesPerSecond send_limit;  // of one device; 0 = as fast as the link
  bool send_blocks = false;   // stages wait for their hand-overs, which go both ways at once
  // Between nodes each member of a tensor group sends its part of a stage's output, which the
  // receivers gather (SC'21, section 4.1), instead of all of it.
  bool scatters_sends = false;
  Seconds send_wait;        // of each tensor of a hand-over, for the device and the other side
  bool sends_mask = false;  // the attention mask, s x s, goes along with the activation

  // Memory.
  double logit_bytes = 12;  // at the peak of the loss, the logits themselves included
  Bytes workspace;          // product workspaces, communication buffers, temporaries
  // Norms and gates are modules of PyTorch that nothing compiles: they keep what lies between their
  // kernels, too.
  bool keeps_between_kernels = false;
  // Transformer Engine: a product keeps its input in the number format that it multiplies in.
  bool keeps_quantised = false;
  // Routing weights are applied in the experts' activation, so that their results are not kept.
  bool applies_router_weight_in_activation = false;
  bool keeps_gradients = true;  // false: they are freed before each step's first forward
  // Sums of gradients are made in buckets of their own, which stay (PyTorch's DDP).
  bool buckets_gradients = false;
  bool packs_gradients = false;  // copied for their reduction where spans are cut differently

  friend bool operator==(const FrameworkTraits&, const FrameworkTraits&) = default;
};

// When a program's weights are fp32 in mixed precision: they are their own master copy then, and
// what is computed with is cast and not kept.
enum class Fp32Weights { never, sharded, always };

// Bytes per parameter in mixed precision, as far as programs differ.
struct MixedState {
  double gradient = 4;          // accumulated
  double sent_gradient = 0;     // when it is reduced; 0 = as it is accumulated
  double sharded_gradient = 0;  // a copy that exists only where ZeRO cuts the optimizer state
  double step_gradient = 0;     // a copy made for the optimizer step, which the allocator keeps
  double gathered = 2;          // of a weight that is sent to where it is computed with
  double master = 4;            // of the copy of a weight that the optimizer updates
  double moment = 4;            // of each value that the optimizer keeps
  Fp32Weights fp32_weights = Fp32Weights::never;
  friend bool operator==(const MixedState&, const MixedState&) = default;
};

// A program whose execution is predicted: a row of data/catalogue/frameworks.json.
struct Framework {
  std::string name = "ideal";  // "megatron-lm"; of the default, which no catalogue has
  FrameworkTraits traits;
  MixedState mixed;
  bool autocast = false;       // mixed precision converts fp32 weights for every product
  bool fully_sharded = false;  // FSDP: gathers weights for every micro-batch under ZeRO-2 too, once
  std::string target = "any";  // the row of plan/target.h that says what it can run

  friend bool operator==(const Framework&, const Framework&) = default;
};

}  // namespace plait
