#pragma once

#include <string>
#include <vector>

#include "base/units.h"

namespace plait {

// What kind of work an op is; decides which formula of cost/ applies to it.
enum class OpKind {
  matmul,       // activations times weights: rows x inner times inner x columns, `count` times
  attention,    // scores, softmax and weighted sum; rows = queries, columns = keys, inner = head
                // size, count = heads
  convolution,  // as the matmul that it is equivalent to (implicit GEMM)
  norm,         // layer norm, RMS norm, batch norm
  elementwise,  // activation functions, residual additions, dropout, rotary embedding
  embedding,    // table look-up
  loss,         // softmax cross-entropy over `columns` classes for `rows` positions
  reduction,    // `rows` sums of `columns` values each
};

// What a memory-bound op computes. Fused kernels make little difference between them; programs that
// run every primitive as a kernel of its own do (cost/op/eager.h). Fingerprints in profile files
// hold the numbers of these and of OpKind: new ones come last.
enum class Function {
  other,
  add,
  layer_norm,
  rms_norm,
  gelu,        // x Phi(x), in one kernel
  gelu_tanh,   // its approximation, in one kernel
  gelu_new,    // the same approximation, written out: eight kernels
  quick_gelu,  // x sigmoid(1.702 x)
  relu,
  silu,  // with a gate: silu(gate) * up
  rotary,
  gelu_twice,  // gelu_new, and once more in the backward pass (BLOOM): nine kernels and eighteen
};

// Functions between the two products of a feed-forward layer.
constexpr bool is_activation(Function function) {
  switch (function) {
    case Function::gelu:
    case Function::gelu_tanh:
    case Function::gelu_new:
    case Function::gelu_twice:
    case Function::quick_gelu:
    case Function::relu:
    case Function::silu:
      return true;
    case Function::other:
    case Function::add:
    case Function::layer_norm:
    case Function::rms_norm:
    case Function::rotary:
      return false;
  }
  return false;
}

// How an op is cut over a tensor-parallel group of t devices.
enum class Split {
  replicated,  // every device computes all of it (1/t of the rows with sequence parallelism)
  column,      // weights cut by output feature: whole input, 1/t of the output
  row,         // weights cut by input feature: 1/t of the input, whole output, needs a reduction
  heads,       // attention: 1/t of the heads
  vocabulary,  // embedding, head and loss: 1/t of the vocabulary
  experts,     // mixture of experts: cut over the expert-parallel group, then as column/row
  shard,       // elementwise work on a tensor that is already cut by its neighbours: 1/t of it
};

// Which part of a tensor of activations each device of a tensor group has.
enum class TensorLayout {
  whole,         // all of it
  by_feature,    // 1/t of the features: of heads, of channels
  by_position,   // 1/t of the positions (sequence parallelism)
  partial_sums,  // a tensor of the same shape; the values are the sum of all
};

// One way to cut an op over a tensor group: how its work is divided, in which layout it wants its
// input and leaves its output, and in which one its backward pass leaves the gradient of its input.
// Sums that belong to the op itself (Op::forward_reduce, Op::backward_reduce) are done before.
struct OpCut {
  Split split = Split::replicated;
  TensorLayout input = TensorLayout::whole;
  TensorLayout output = TensorLayout::whole;
  TensorLayout input_gradient = TensorLayout::whole;
  friend bool operator==(const OpCut&, const OpCut&) = default;

  // Wanted by the backward pass: partial sums hand the gradient of their sum to every device.
  TensorLayout output_gradient() const {
    return output == TensorLayout::partial_sums ? TensorLayout::whole : output;
  }
};

// One operator, counted for one sample (one sequence, one image) and before any sharding. All
// counts are doubles holding whole numbers (exact up to 2^53); bytes follow from the precision.
struct Op {
  std::string name;  // "attention.qkv"
  OpKind kind = OpKind::elementwise;
  Split split = Split::replicated;

  // matmul, convolution: [rows x inner] times [inner x columns], `count` independent ones.
  // attention: see OpKind. loss, embedding: rows positions, columns classes or features. Rotary
  // embedding that cuts and joins heads: rows positions, columns features of whole heads, inner
  // features that stay in memory where nothing is fused.
  double rows = 0;
  double inner = 0;
  double columns = 0;
  double count = 1;
  double kv_count = 0;  // attention: key and value heads, less than `count` when they are grouped
  // matmul, attention: how many matrices queries, keys and values (or gate and up) are: 1 when they
  // are concatenated.
  double matrices = 1;
  double branches = 1;  // residual addition: results that are added to the stream
  Function function = Function::other;
  bool scale_in_fp32 = false;  // norm: its scale is applied in fp32
  bool shares_input = false;   // norm: another norm keeps the same input
  bool gated = false;          // activation: its result is multiplied by a gate
  // Sums up the results of a token's experts; what it moves counts with their exchange.
  bool combines_experts = false;
  // attention: PyTorch has no fused kernel for it, because of what is added to the scores (T5's
  // bias, ALiBi) or of one key for all heads (Falcon), and writes them to memory.
  bool writes_scores = false;
  bool scores_in_16_bits = false;  // then: they are multiplied in 16 bits, not in fp32
  bool learnt_bias = false;        // then: what is added to them is learnt

  // multiply-add = 2 flops; causal attention counts the full square here. Only matrix products,
  // convolutions and attention count; the other kinds are bound by what they move.
  Flops forward;
  double parameters = 0;  // learnt values, all experts included

  // Elements of activations read and written by the forward pass besides weights: by the
  // memory-bound kinds and by convolutions, whose product would count its input several times. Of
  // attention: to cut queries, keys and values into heads, what is rotated on the way not included.
  double moved = 0;

  // Elements kept from forward for backward, in the compute precision, and bytes kept whatever the
  // precision is (dropout masks; the softmax of the loss in fp32). The s^2 part of attention is not
  // in here: cost/ adds it when the job says plain (not flash) attention.
  double saved = 0;
  Bytes saved_mask;
  // True when the saved tensors are already cut by tensor parallelism (the input of a row-split
  // matmul); false when every device of the group keeps all of them unless sequence parallel.
  bool saved_is_sharded = false;
  // All of what is saved is on every device even with sequence parallelism.
  bool saved_is_whole = false;

  // Elements reduced over the tensor group when the op is split: after its forward (row-split,
  // vocabulary embedding) and after its backward (the first column-split op of a region).
  double forward_reduce = 0;
  double backward_reduce = 0;

  // Elements sent to experts and back in forward (dispatch + combine together); backward does the
  // same again. Zero outside mixtures of experts.
  double expert_exchange = 0;
  // Of that many groups of neighbouring experts a token visits so many at most.
  double expert_groups = 1;
  double chosen_groups = 1;

  // Elements that must cross a cut right after this op: its output and whatever later ops of the
  // layer still need (the residual). Used when the model is taken apart by at_op_granularity().
  double boundary = 0;

  // The ways in which the op can be cut, the usual one first, where its shape does not say it
  // (op_cuts.h): of ops that are only measured, and of those whose sums are done with another op's.
  std::vector<OpCut> cuts;

  friend bool operator==(const Op&, const Op&) = default;
};

// "" or what is wrong: a product, a convolution or attention whose shape is not there has no time.
std::string fault_of(const Op& op);

}  // namespace plait
