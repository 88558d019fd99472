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

inline constexpr double kUsualEpsilon = 1e-5;

// Layer norm or RMS norm of the last dimension; weight and bias may be undefined.
at::Tensor normalise(const at::Tensor& x, Function kind, const at::Tensor& weight,
                     const at::Tensor& bias, double epsilon = kUsualEpsilon);

// Each channel of each sample over its own positions: [samples, channels, side, side]. Stands for
// batch norm, whose result would depend on how a batch is cut (docs/runtime.md). One position, of
// which nothing would be left, is only scaled and shifted.
at::Tensor normalise_maps(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

// silu, gelu ...; with `gated` of the first half of the last dimension, times the second half.
at::Tensor activate(const at::Tensor& x, Function function, bool gated);

// Rows of experts, one expert's after the other's, times their weights [experts, outputs, inputs],
// plus their biases [experts, outputs], which may be undefined. Rows of expert e end at ends[e],
// whole numbers of 4 bytes on the device. In bf16 on a GPU it is one product of all, of which the
// host need not know who has how many rows; else experts take turns, after a wait for `ends`.
at::Tensor expert_products(const at::Tensor& rows, const at::Tensor& weights,
                           const at::Tensor& biases, const at::Tensor& ends);

// -log softmax(logits) at each label, in the wide type: [rows, classes] and [rows] give [rows]. No
// more than 87, which is what fp32 can tell of a chance; the gradient is right beyond it. Backward
// overwrites what forward kept, so it may run once.
at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& labels);

// Turns the first 2 n features of every head, cosine and sine being [positions, n] (Su et al.,
// arXiv 2104.09864): x is [samples, positions, heads, features]. Pairs are i and i + n, or
// `neighbours` 2i and 2i + 1.
at::Tensor turn(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine,
                bool neighbours = false);

// Angles for `positions` and heads turned by `features`: {cosine, sine}.
std::pair<at::Tensor, at::Tensor> turning_angles(std::int64_t positions, std::int64_t features,
                                                 const Rotary& rotary,
                                                 const at::TensorOptions& options);

// x, or cap * tanh(x / cap) where `cap` is above 0.
at::Tensor capped(const at::Tensor& x, double cap);

struct AttentionShape {
  std::int64_t head_dim = 0;
  bool causal = false;
  double scale = 1;    // of scores
  double cap = 0;      // of scores, as capped() does it; then they are written to memory
  bool plain = false;  // scores are written to memory; else a fused kernel where there is one
};

// q [samples, queries, heads * head_dim], k and v [samples, keys, kv heads * head_dim]; `bias`
// [heads, queries, keys] may be undefined.
at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                  const at::Tensor& bias, const AttentionShape& shape);

// Row of the table that holds the bias of a query and a key so far apart, as in T5 (Raffel et al.,
// arXiv 1910.10683): [2 * positions - 1] of whole numbers below `buckets`, for key - query from
// 1 - positions to positions - 1; from `distance` on all are in the last bucket.
at::Tensor relative_buckets(std::int64_t positions, std::int64_t buckets, std::int64_t distance,
                            bool causal);

// [heads, 2 * positions - 1], by key - query, as [heads, positions, positions], by query and key.
// Its gradient is a plain sum along diagonals: a gradient of single cells would be added to the few
// rows of a table by all positions at once, which takes GPUs longer than the attention.
at::Tensor by_query_and_key(const at::Tensor& by_difference);

// The bias of ALiBi (Press et al., arXiv 2108.12409) for heads [first, first + count) of `heads`:
// slope * (key - query), [count, positions, positions]. The slopes of n heads, n a power of 2, are
// 2^(-8 i / n), i from 1 to n; other numbers of heads take every second slope of 2 n heads as well.
at::Tensor alibi_bias(std::int64_t heads, std::int64_t first, std::int64_t count,
                      std::int64_t positions);

// Whether a query does not see a key, [positions, positions]: it sees its own position and, of
// those before it, the last `window` - 1; 0 = all.
at::Tensor unseen_keys(std::int64_t positions, std::int64_t window);

}  // namespace plait::runtime
