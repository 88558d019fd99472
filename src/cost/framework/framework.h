#pragma once

#include "base/units.h"
#include "plan/problem.h"

namespace plait {

// Bytes that training keeps for each parameter, and bytes that it sends.
struct StateBytes {
  double weight = 2;
  double gradient = 2;
  double optimizer = 12;        // master copy included
  double sharded_gradient = 0;  // a copy that exists only where ZeRO cuts the optimizer state
  double gathered = 2;          // of a weight that is sent to where it is computed with
  double sent_gradient = 2;     // of a gradient that is reduced
};
// `sharded_weights`: as under ZeRO-3, where the frameworks that gather weights keep them in fp32.
StateBytes state_bytes(const Job& job, bool sharded_weights = false);

// Bytes that the optimizer step reads and writes per parameter: Adam in mixed precision reads a
// 2-byte gradient, reads and writes three fp32 values and writes the 2-byte weight, 28 in all.
double optimizer_traffic(const Job& job);

DType compute_dtype(Precision precision);  // of matrix products
// Of attention and of the output layer: 16 bits for fp8.
DType attention_dtype(Precision precision);
double activation_bytes(Precision precision);

// What differs between the programs that execute a plan; few constants each, fitted on runs of that
// program on all its device types together (docs/cost-model.md#frameworks).
struct FrameworkTraits {
  // Host: time to launch the work of a GPT block forward and backward, and what adds to it.
  Seconds host_block = Seconds(0.6e-3);
  double host_tensor = 0.14;                 // relative, when collectives are launched too
  Seconds host_split = Seconds(0);           // per product with fewer tiles than multiprocessors
  Seconds host_unfused = Seconds(1.6e-3);    // when the fused softmax cannot be used
  double host_recompute = 1.0 / 3;           // relative, with full recompute
  Seconds host_checkpoint = Seconds(0);      // and per block that is recomputed
  Seconds host_kernel = Seconds(0);          // per kernel, where none are fused
  Seconds host_experts = Seconds(2e-3);      // of a mixture of experts
  Seconds host_head = Seconds(0.6e-3);       // of the output layer; never hidden
  Seconds host_embedding = Seconds(0.5e-3);  // of the input layer; never hidden
  double host_corner = 6;                    // exponent that joins host and device time

  // Kernels.
  double traffic = 1;         // of memory-bound kernels, relative to well-fused ones
  double expert_traffic = 6;  // passes over the routed tokens to sort, pad and combine them
  double loss_bytes = 30;     // traffic per logit in the loss, forward and backward together
  double cast_bytes = 0;      // traffic per parameter, forward and again backward, to cast weights
  bool unfused = false;       // every primitive is a kernel of its own (cost/op/eager.h)
  bool native_attention = false;  // flash kernels written for the device's architecture
  bool fused_softmax = false;     // has a fused softmax for plain attention
  // Passes over the scores, 2 bytes each, that separate kernels add where it cannot be used.
  double softmax_forward = 8;
  double softmax_backward = 4;
  bool pads_vocabulary = false;  // to a multiple of 128 times the tensor degree
  bool alternate = false;        // selective recompute repeats every second op, not attention

  // Overlap (cost/comm/overlap.h): what a second of communication costs that runs beside compute; 0
  // = nothing, 1 = the framework does not overlap it. Of tensor parallelism beside the product that
  // it belongs to, and, in backward, beside the weight gradient; of gradients beside the backward
  // pass of the last micro-batch; of experts beside their layer; of context beside its attention.
  double tensor_exposed = 1;
  double tensor_backward = 0.4;
  Seconds tensor_skew = Seconds(0);  // waiting for the slowest of two devices, per block
  double tensor_skew_power = 0.68;   // growth with log2 of the devices
  double data_exposed = 1;
  double expert_exposed = 1;
  double context_exposed = 0.3;
  BytesPerSecond send_limit = BytesPerSecond(0);  // of one device; 0 = as fast as the link
  bool send_blocks = false;  // stages wait for their hand-overs, which go both ways at once
  // Between nodes each member of a tensor group sends its part of a stage's output, which the
  // receivers gather (SC'21, section 4.1), instead of all of it.
  bool cuts_sends = false;
  // Each hand-over waits for the device and for the other side, whatever it sends.
  Seconds send_wait = Seconds(0);
  bool sends_mask = false;  // the attention mask, s x s, goes along with the activation

  // Memory.
  double logit_bytes = 12;          // at the peak of the loss, the logits themselves included
  Bytes workspace = Bytes(0x1p30);  // product workspaces, communication buffers, temporaries
  // Transformer Engine: a product keeps its input in the number format that it multiplies in.
  bool keeps_quantised = false;
  // Routing weights are applied in the experts' activation, so that their results are not kept.
  bool weighs_early = false;
  bool keeps_gradients = true;   // false: they are freed before each step's first forward
  bool packs_gradients = false;  // copied for their reduction where spans are cut differently
};
FrameworkTraits traits_of(const Job& job);

}  // namespace plait
