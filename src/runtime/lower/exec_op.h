#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/model.h"
#include "plan/plan.h"

namespace plait::runtime {

// The planning description of a model, lowered to what is executed: one ExecOp for each op, in the
// same order, so that a cut may fall after any of them. Free of libtorch.

struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

// Consecutive entries of one dimension that are cut over a tensor group on their own: of the
// dimension of attention.qkv there are three, queries, keys and values. A cut falls between
// `pieces` (heads) only; 0 = the last devices may get fewer entries or none (the vocabulary).
struct Part {
  std::int64_t size = 0;
  std::int64_t pieces = 0;
  friend bool operator==(const Part&, const Part&) = default;
};

// What device `rank` of `tensor` holds. Pieces that are fewer than the devices are repeated: 2
// key heads of 8 entries on device 3 of 4 give {8, 16}.
std::vector<Interval> shard_of(const std::vector<Part>& parts, int tensor, int rank);

enum class Start { normal, kaiming, ones, zeros };

// How the gradients that the devices of a tensor group compute for an uncut parameter add up.
enum class GradientOf {
  positions,  // the same on all, unless each has its own positions (sequence parallelism): then sum
  whole,      // always the same on all
  part,       // always a part of the sum
};

struct Parameter {
  std::string name;  // "3.attention.qkv.weight", layer 3: the same whatever the plan
  std::vector<std::int64_t> shape;
  int dim = -1;  // that is cut; -1: every device of a tensor group has all of it
  std::vector<Part> parts;
  Start start = Start::normal;
  GradientOf gradient = GradientOf::positions;
  bool owned = true;  // false: another op owns it, and this one uses it again

  double size() const;
  friend bool operator==(const Parameter&, const Parameter&) = default;
};

// A tensor that is alive between two ops, without the dimension of samples.
struct LiveTensor {
  std::string name;  // "x", "residual", "memory", "q" ...
  std::vector<std::int64_t> shape;
  // Cut over the tensor group: by position, when sequence parallel; along `dim`; or not at all.
  enum class Cut { stream, features, none } cut = Cut::stream;
  int dim = 0;
  std::vector<Part> parts;
  friend bool operator==(const LiveTensor&, const LiveTensor&) = default;
};

enum class ExecOpKind {
  tokens,
  positions,
  types,
  patches,
  class_token,
  relative_bias,  // holds the table that the blocks of the stack read
  nothing,        // dropout, which is not applied
  norm,
  qk_norm,
  dense,   // x W' + b, uncut
  column,  // W cut by output
  row,     // W cut by input, then a reduction
  queries_keys_values,
  cross_queries,
  cross_keys_values,
  rotary,
  attention,
  activation,
  residual,
  router,
  top_k,
  experts_up,
  experts_activation,
  experts_down,
  combine,
  shared_gate,
  shared_add,
  pooler,
  next_sentence,
  classifier,
  logits,
  loss,
  convolution,
  batch_norm,
  relu,
  max_pool,
  skip,  // the convolution on the way past a bottleneck
  skip_norm,
  add_relu,
  average_pool,
};

// How a product or convolution is cut that is not cut as usual (model/op_cuts.h). It takes its
// input and leaves its output as the usual cut does, so that neither its neighbours nor a boundary
// of spans know of it.
enum class OtherCut {
  none,
  by_input,   // of the whole input each device takes its features; partial sums are added and cut
  by_output,  // features of the input are gathered, and those of the output
};

struct ExecOp {
  ExecOpKind kind = ExecOpKind::nothing;
  std::string name;  // of the op
  Function function = Function::other;
  std::vector<Parameter> parameters;  // weight, then bias, where there are any
  bool begins_branch = false;         // keeps x as "residual" first
  bool keeps_memory = false;          // keeps x as "memory" first: an encoder's output
  bool keeps_input = false;           // keeps x as "input" first, for a later branch
  bool reads_input = false;           // keeps x as "routed" and takes "input" back as x
  bool reads_residual = false;        // keeps x as "routed" and takes "residual" as x
  bool may_cut_after = true;
  bool selective = false;  // selective recompute runs it again
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t rotary_dim = 0;
  Rotary rotary;  // `base` and `scaling` as this layer has them
  bool causal = false;
  bool alibi = false;
  std::int64_t window = 0;             // attention to this many last positions; 0 = to all
  std::int64_t relative_distance = 0;  // of the table of relative positions, where there is one
  double scale = 1;       // of scores, embedded tokens, what is added to the stream, logits, shares
  double cap = 0;         // of scores and logits: x becomes cap * tanh(x / cap); 0 = none
  double epsilon = 1e-5;  // of a norm
  bool gated = false;
  bool normalised = true;  // shares of the chosen experts sum to 1, before `scale`
  bool gathers = false;    // a convolution cut by output whose output every device gets whole
  OtherCut other = OtherCut::none;
  std::vector<Part> usual_parts;  // then: what the weight's parts are when it is cut as usual
  bool cut = false;               // the loss is over a vocabulary that is cut
  std::int64_t classes = 0;       // of the loss
  std::int64_t positions = 0;     // of the stream
  std::int64_t first_row = 0;     // of a table of positions: the row of the first
  std::int64_t experts = 0, chosen = 0;           // of a mixture
  std::int64_t kernel = 0, stride = 0, side = 0;  // of a convolution; side of its output
  std::vector<LiveTensor> alive;                  // after it
  friend bool operator==(const ExecOp&, const ExecOp&) = default;
};

struct ExecProgram {
  std::vector<ExecOp> ops;
  std::vector<int> begin;   // of each unit; one more at the end
  std::vector<bool> layer;  // unit: whether it begins a layer
  bool images = false;      // samples are images, not tokens
  std::int64_t source = 0;  // tokens of a sample; side of an image
  std::int64_t target = 0;  // tokens of the decoder; 0 where there is only one stack
  std::int64_t vocabulary = 0;
  std::int64_t classes = 0;    // of the loss
  std::int64_t labels = 0;     // of a sample
  bool masked = false;         // the loss is over masked tokens
  bool next_sentence = false;  // and over whether two sentences follow each other
  std::int64_t type_rows = 0;
  friend bool operator==(const ExecProgram&, const ExecProgram&) = default;
};

// The model as a program, or why it cannot be run: "layer 1 (decoder): op 'attention.qk_norm' ...".
// What is run follows from the model's architecture and from which op is in which unit; the costs
// of the ops have no part in it.
struct Lowered {
  ExecProgram program;
  std::string fault;
};
Lowered lower(const Model& model);

// The program of a plan: ops are cut in the way that their span says.
ExecProgram with_splits(ExecProgram program, const Plan& plan);

}  // namespace plait::runtime
