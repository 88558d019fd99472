#include "model/transformer_blocks.h"

#include <utility>

#include "model/op_cuts.h"

namespace plait {
namespace {

// Writes one block. The residual stream x (positions x hidden) is `held` from where a sub-layer
// reads it to where its result is added.
class BlockWriter {
 public:
  BlockWriter(const BlockShape& shape, const Stack& stack)
      : shape_(shape), config_(*shape.config), stack_(stack), s_(stack.positions) {
    ops_.held = stack.encoder_positions * shape.hidden;
  }

  LayerKind write(std::string name, bool mixture) {
    if (config_.parallel) {
      write_parallel();
      return ops_.take(std::move(name));
    }
    sublayer("attention", [&] { self_attention(); });
    if (stack_.encoder_positions > 0) sublayer("cross", [&] { cross_attention(); });
    sublayer("mlp", [&] {
      if (mixture)
        experts();
      else
        mlp("mlp", shape_.ffn);
    });
    return ops_.take(std::move(name));
  }

 private:
  double stream() const { return s_ * shape_.hidden; }

  Op& norm(std::string name) {
    Op& op = ops_.norm(std::move(name), Split::replicated, s_, shape_.hidden,
                       shape_.norm_parameters(shape_.hidden));
    op.scale_in_fp32 = config_.wide_norm;
    return op;
  }

  // Adds the sub-layer's result, after dropout, to the stream.
  void add_residual(const std::string& name, int branches = 1) {
    Op& op = ops_.elementwise(name + ".residual", Split::replicated, (1 + branches) * stream(),
                              stream());
    op.function = Function::add;
    op.branches = branches;
    if (!config_.dropout) return;
    op.saved_mask = Bytes(branches * stream());
    op.moved += branches * stream() / 2;  // the mask, a byte each
  }

  template <typename Body>
  void sublayer(const std::string& name, const Body& body) {
    const NormPlace place = config_.norm_place;
    ops_.held += stream();
    if (place == NormPlace::before || place == NormPlace::sandwich) norm(name + ".norm");
    body();
    if (place == NormPlace::sandwich) norm(name + ".norm_out");
    if (place == NormPlace::after) norm(name + ".norm");
    ops_.held -= stream();
    add_residual(name);
    if (place == NormPlace::after_adding) norm(name + ".norm");
  }

  // Attention and MLP read the same stream, so their partial sums are reduced together, after the
  // MLP; with one norm for both, its output is kept once and its gradients are reduced together.
  void write_parallel() {
    ops_.held += stream();
    norm("attention.norm");
    const double kept = config_.shared_norm ? stream() : 0;
    ops_.held += kept;
    self_attention();
    ops_.held += stream() - kept;
    ops_.last().forward_reduce = 0;
    if (!config_.shared_norm) norm("mlp.norm").shares_input = true;
    Op& up = ops_.at(mlp("mlp", shape_.ffn));
    if (config_.shared_norm) up.saved = up.backward_reduce = 0;
    // Their sums are done together, so that none of them is cut in another way by itself.
    for (int i = 0; i < ops_.size(); ++i)
      if (const std::vector<OpCut> cuts = cuts_of(ops_.at(i)); cuts.size() > 1)
        ops_.at(i).cuts = {cuts.front()};
    ops_.held -= 2 * stream();
    add_residual("mlp", 2);
  }

  void self_attention() {
    if (config_.mla.kv_rank > 0) {
      latent_attention();
      return;
    }
    const double queries = shape_.heads * shape_.head_dim;
    const double keys = shape_.kv_heads * shape_.head_dim;
    const double matrices = config_.fused_qkv ? 1 : 3;
    Op& qkv = ops_.matmul("attention.qkv", Split::column, s_, shape_.hidden, queries + 2 * keys,
                          config_.qkv_bias);
    qkv.backward_reduce = stream();
    qkv.matrices = matrices;
    norm_queries_and_keys(queries, keys);
    const double turned = s_ * (shape_.heads + shape_.kv_heads) *
                          (config_.rotary_dim > 0 ? config_.rotary_dim : shape_.head_dim);
    if (config_.positions == Positions::rotary) {
      Op& op = rotary(turned, s_ * (queries + 2 * keys) - turned);
      if (config_.rotary_dim > 0) {
        op.rows = s_;
        op.columns = queries + keys;
        // Attention's result is laid out as joined queries are, and copied; values are a part of
        // concatenated queries, keys and values, which stay.
        op.inner = queries + (config_.fused_qkv ? queries + keys : 0);
      }
    }
    const double window = stack_.window > 0 ? stack_.window : s_;
    Op& core = ops_.attention("attention.core", {.queries = window,
                                                 .keys = window,
                                                 .heads = shape_.heads * s_ / window,
                                                 .kv_heads = shape_.kv_heads * s_ / window,
                                                 .key_dim = shape_.head_dim,
                                                 .value_dim = shape_.head_dim});
    core.matrices = matrices;
    // Scores with a bias (T5's, ALiBi), and one key for all heads, have no fused kernel in PyTorch.
    const bool one_key = config_.fused_qkv && shape_.kv_heads == 1 && shape_.heads > 1;
    const bool alibi = config_.positions == Positions::alibi;
    core.learnt_bias = config_.positions == Positions::relative;
    core.writes_scores = core.learnt_bias || alibi || one_key;
    // Models that write attention out themselves (BLOOM, MPT) multiply in 16 bits, PyTorch's
    // stand-in for its fused kernels in fp32.
    core.scores_in_16_bits =
        core.writes_scores && config_.fused_qkv && shape_.kv_heads == shape_.heads;
    if (config_.attention_sinks) core.parameters = shape_.heads;
    if (config_.positions == Positions::relative && config_.relative_everywhere)
      core.parameters = config_.relative_buckets * shape_.heads;
    if (config_.positions == Positions::rotary) core.moved -= 2 * turned;
    ops_.matmul("attention.projection", Split::row, s_, queries, shape_.hidden,
                config_.projection_bias);
  }

  void norm_queries_and_keys(double queries, double keys) {
    if (config_.qk_norm == QkNorm::none) return;
    const double per_feature = config_.qk_norm_kind == NormKind::layer ? 2 : 1;
    const double features =
        config_.qk_norm == QkNorm::per_head ? 2 * shape_.head_dim : queries + keys;
    ops_.held += s_ * keys;  // values
    Op& op =
        ops_.norm("attention.qk_norm", Split::shard, s_, queries + keys, per_feature * features);
    op.scale_in_fp32 = config_.wide_norm;
    ops_.held -= s_ * keys;
  }

  Op& rotary(double turned, double values) {
    ops_.held += values;
    Op& op = ops_.elementwise("attention.rotary", Split::shard, turned, turned);
    op.function = Function::rotary;
    ops_.held -= values;
    return op;
  }

  // Queries and keys-values come from low-rank latents, which every device of a tensor group
  // computes whole; the expansions are cut by heads.
  void latent_attention() {
    const Mla& mla = config_.mla;
    const double key_dim = mla.nope_dim + mla.rope_dim;
    const double queries = shape_.heads * key_dim;
    const double norm_part = config_.norm_affine ? 1 : 0;
    ops_.held += stream();  // the normed input, read again for keys and values
    if (mla.q_rank > 0) {
      ops_.matmul("attention.q_down", Split::replicated, s_, shape_.hidden, mla.q_rank,
                  config_.qkv_bias);
      ops_.norm("attention.q_norm", Split::replicated, s_, mla.q_rank, norm_part * mla.q_rank);
      ops_.matmul("attention.q_up", Split::column, s_, mla.q_rank, queries, false).backward_reduce =
          s_ * mla.q_rank;
    } else {
      ops_.matmul("attention.q", Split::column, s_, shape_.hidden, queries, false).backward_reduce =
          stream();
    }
    ops_.held += s_ * queries - stream();
    ops_.matmul("attention.kv_down", Split::replicated, s_, shape_.hidden,
                mla.kv_rank + mla.rope_dim, config_.qkv_bias)
        .saved = 0;  // the same input as the queries'
    ops_.held += s_ * mla.rope_dim;
    ops_.norm("attention.kv_norm", Split::replicated, s_, mla.kv_rank, norm_part * mla.kv_rank);
    ops_.matmul("attention.kv_up", Split::column, s_, mla.kv_rank,
                shape_.heads * (mla.nope_dim + mla.value_dim), false)
        .backward_reduce = s_ * (mla.kv_rank + mla.rope_dim);
    ops_.held -= s_ * (queries + mla.rope_dim);
    const double turned = s_ * (shape_.heads + 1) * mla.rope_dim;
    const double all = s_ * (queries + shape_.heads * (key_dim + mla.value_dim));
    rotary(turned, all - turned);
    Op& core = ops_.attention("attention.core", {.queries = s_,
                                                 .keys = s_,
                                                 .heads = shape_.heads,
                                                 .kv_heads = shape_.heads,
                                                 .key_dim = key_dim,
                                                 .value_dim = static_cast<double>(mla.value_dim)});
    core.moved -= 2 * turned;
    ops_.matmul("attention.projection", Split::row, s_, shape_.heads * mla.value_dim, shape_.hidden,
                config_.projection_bias);
  }

  // The encoder's output is kept once, by the unit that made it, not by every block.
  void cross_attention() {
    const double queries = shape_.heads * shape_.head_dim;
    const double keys = shape_.kv_heads * shape_.head_dim;
    const double memory = stack_.encoder_positions;
    ops_.matmul("cross.q", Split::column, s_, shape_.hidden, queries, config_.qkv_bias)
        .backward_reduce = stream();
    ops_.held += s_ * queries;
    Op& kv =
        ops_.matmul("cross.kv", Split::column, memory, shape_.hidden, 2 * keys, config_.qkv_bias);
    kv.backward_reduce = memory * shape_.hidden;
    kv.saved = 0;
    ops_.held -= s_ * queries;
    ops_.attention("cross.core", {.queries = s_,
                                  .keys = memory,
                                  .heads = shape_.heads,
                                  .kv_heads = shape_.kv_heads,
                                  .key_dim = shape_.head_dim,
                                  .value_dim = shape_.head_dim});
    ops_.matmul("cross.projection", Split::row, s_, queries, shape_.hidden,
                config_.projection_bias);
  }

  // Returns the position of its first op.
  int mlp(const std::string& name, double ffn) {
    const double up = config_.gated ? 2 * ffn : ffn;
    const int first = ops_.size();
    Op& first_op =
        ops_.matmul(name + ".up", Split::column, s_, shape_.hidden, up, config_.mlp_bias);
    first_op.backward_reduce = stream();
    first_op.matrices = config_.gated ? 2 : 1;
    activation(name, s_ * up, s_ * ffn);
    ops_.matmul(name + ".down", Split::row, s_, ffn, shape_.hidden, config_.mlp_bias);
    return first;
  }

  void activation(const std::string& name, double read, double written) {
    Op& op = ops_.elementwise(name + ".activation", Split::shard, read, written);
    op.saved = read;
    op.function = config_.activation;
    op.gated = config_.gated;
  }

  // Tokens are sent to the experts that they chose (dispatch) and their results back (combine).
  void experts() {
    const Moe& moe = config_.moe;
    const double visits = s_ * moe.top_k;
    const double up = config_.gated ? 2.0 * moe.ffn : moe.ffn;
    ops_.held += stream();
    ops_.matmul("router", Split::replicated, s_, shape_.hidden, moe.experts, moe.router_bias);
    ops_.elementwise("router.top_k", Split::replicated, s_ * moe.experts, visits).saved =
        s_ * moe.experts;
    ops_.held += visits - stream();
    if (moe.shared_ffn > 0) ops_.held += stream();
    Op& first = expert_matmul("experts.up", shape_.hidden, up);
    first.expert_exchange = visits * shape_.hidden;
    first.expert_groups = moe.groups;
    first.chosen_groups = moe.chosen_groups;
    first.backward_reduce = stream();
    activation("experts", visits * up, visits * moe.ffn);
    Op& last = expert_matmul("experts.down", moe.ffn, shape_.hidden);
    last.expert_exchange = visits * shape_.hidden;
    last.expert_groups = moe.groups;
    last.chosen_groups = moe.chosen_groups;
    // A token's results are combined before they are reduced, its gradients likewise.
    last.forward_reduce = stream();
    last.saved_is_sharded = true;
    ops_.held -= visits;
    // Its traffic counts with the exchange (FrameworkTraits::expert_traffic).
    Op& combine = ops_.elementwise("experts.combine", Split::replicated, 0, stream());
    combine.moved = 0;
    combine.combines_experts = true;
    combine.saved = visits * shape_.hidden;
    if (moe.shared_ffn > 0) shared_experts();
  }

  Op& expert_matmul(std::string name, double inner, double columns) {
    const Moe& moe = config_.moe;
    const double visits = s_ * moe.top_k;
    Op& op = ops_.matmul(std::move(name), Split::experts, visits / moe.experts, inner, columns,
                         moe.bias);
    op.count = moe.experts;
    op.forward = Flops(2 * visits * inner * columns);
    op.parameters *= moe.experts;
    op.moved = visits * (inner + columns);
    op.saved = visits * inner;
    op.boundary = visits * columns + ops_.held;
    return op;
  }

  void shared_experts() {
    const double gate = config_.moe.shared_gate ? s_ : 0;
    if (gate > 0) {
      ops_.held += stream();
      ops_.matmul("shared.gate", Split::replicated, s_, shape_.hidden, 1, false).saved = 0;
      ops_.held -= stream();
    }
    ops_.held += gate;
    Op& up = ops_.at(mlp("shared", config_.moe.shared_ffn));
    up.saved = 0;  // the router's input
    // Added to the routed experts' partial sums and reduced with them.
    up.backward_reduce = 0;
    ops_.last().forward_reduce = 0;
    ops_.held -= gate + stream();
    Op& sum = ops_.elementwise("shared.add", Split::replicated, 2 * stream() + gate, stream());
    if (gate > 0) sum.saved = stream();
  }

  const BlockShape& shape_;
  const TransformerConfig& config_;
  const Stack& stack_;
  const double s_;
  OpList ops_;
};

}  // namespace

BlockShape::BlockShape(const TransformerConfig& c)
    : config(&c),
      hidden(c.hidden),
      heads(c.heads),
      kv_heads(c.kv_heads > 0 ? c.kv_heads : c.heads),
      head_dim(c.head_dim > 0 ? c.head_dim : c.hidden / c.heads),
      ffn(c.ffn > 0 ? c.ffn : 4.0 * c.hidden) {}

double BlockShape::norm_parameters(double width) const {
  if (!config->norm_affine) return 0;
  return config->norm == NormKind::layer && config->norm_shift ? 2 * width : width;
}

LayerKind transformer_block(const BlockShape& shape, const Stack& stack, std::string name,
                            bool mixture) {
  return BlockWriter(shape, stack).write(std::move(name), mixture);
}

}  // namespace plait
