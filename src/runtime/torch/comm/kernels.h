#pragma once

#include <ATen/core/Tensor.h>
#include <torch/version.h>

#include <optional>

#include "model/model.h"

// Adam in one pass over memory, on CPUs too since 2.5.
#define PLAIT_FUSED_ADAM \
  (TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 5))

namespace plait::runtime {

// What sums, losses and norms of values of this type are computed in: fp32, and fp64 of fp64.
inline at::ScalarType wide_type(at::ScalarType type) {
  return type == at::kDouble ? at::kDouble : at::kFloat;
}

// The parts of a layer that are more than one call of libtorch.

// Layer norm or RMS norm of the last dimension; weight and bias may be undefined.
at::Tensor normalise(const at::Tensor& x, Function kind, const at::Tensor& weight,
                     const at::Tensor& bias);

// Each channel of each sample over its own positions: [samples, channels, side, side]. Stands for
// batch norm, whose result would depend on how a batch is cut (docs/runtime.md). One position, of
// which nothing would be left, is only scaled and shifted.
at::Tensor normalise_maps(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

// silu, gelu ...; with `gated` of the first half of the last dimension, times the second half.
at::Tensor activate(const at::Tensor& x, Function function, bool gated);

// -log softmax(logits) at each label, in the wide type: [rows, classes] and [rows] give [rows]. No
// more than 87, which is what fp32 can tell of a chance; the gradient is right beyond it. Backward
// overwrites what forward kept, so it may run once.
at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& labels);

// Turns the first 2 n features of every head, cosine and sine being [positions, n] (Su et al.,
// arXiv 2104.09864, pairs i and i + n): x is [samples, positions, heads, features].
at::Tensor turn(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine);

// Angles for `positions` and heads turned by `features` (base 10000): {cosine, sine}.
std::pair<at::Tensor, at::Tensor> turning_angles(std::int64_t positions, std::int64_t features,
                                                 const at::TensorOptions& options);

struct AttentionShape {
  std::int64_t head_dim = 0;
  bool causal = false;
  double scale = 1;    // of scores
  bool plain = false;  // scores are written to memory; else a fused kernel where there is one
};

// q [samples, queries, heads * head_dim], k and v [samples, keys, kv heads * head_dim]; `bias`
// [heads, queries, keys] may be undefined.
at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                  const at::Tensor& bias, const AttentionShape& shape);

// Row of the table that holds the bias of a query and a key so far apart, as in T5 (Raffel et al.,
// arXiv 1910.10683): [queries * keys] of whole numbers below `buckets`.
at::Tensor relative_buckets(std::int64_t queries, std::int64_t keys, std::int64_t buckets,
                            bool causal);

}  // namespace plait::runtime
