#include <fmt/format.h>

#include "base/error.h"
#include "io/model/plait_model.h"
#include "plan/names.h"

namespace plait {
namespace {

constexpr int kMostSize = 1 << 28;

// Sets `field` when the key is there.
void set(const JsonValue& object, std::string_view key, int& field) {
  field = object.integer_or(key, 0, kMostSize, field);
}
void set(const JsonValue& object, std::string_view key, bool& field) {
  field = object.boolean_or(key, field);
}

template <typename Enum>
void set(const JsonValue& object, std::string_view key, const std::vector<std::string_view>& names,
         Enum& field) {
  if (const auto value = object.find(key)) field = static_cast<Enum>(value->choice(names));
}

Moe read_moe(const JsonValue& object) {
  object.allow_only({"experts", "top_k", "ffn", "shared_ffn", "shared_gate", "bias", "router_bias",
                     "first_dense", "every", "dense"});
  Moe moe;
  set(object, "experts", moe.experts);
  set(object, "top_k", moe.top_k);
  set(object, "ffn", moe.ffn);
  set(object, "shared_ffn", moe.shared_ffn);
  set(object, "shared_gate", moe.shared_gate);
  set(object, "bias", moe.bias);
  set(object, "router_bias", moe.router_bias);
  set(object, "first_dense", moe.first_dense);
  set(object, "every", moe.every);
  if (const auto dense = object.find("dense"))
    for (const JsonValue& layer : dense->items()) moe.dense.push_back(layer.integer(0, kMostSize));
  return moe;
}

Mla read_mla(const JsonValue& object) {
  object.allow_only({"q_rank", "kv_rank", "nope_dim", "rope_dim", "value_dim"});
  Mla mla;
  set(object, "q_rank", mla.q_rank);
  set(object, "kv_rank", mla.kv_rank);
  set(object, "nope_dim", mla.nope_dim);
  set(object, "rope_dim", mla.rope_dim);
  set(object, "value_dim", mla.value_dim);
  return mla;
}

Patches read_patches(const JsonValue& object) {
  object.allow_only({"image", "patch", "channels", "tokens"});
  Patches patches;
  set(object, "image", patches.image);
  set(object, "patch", patches.patch);
  set(object, "channels", patches.channels);
  set(object, "tokens", patches.tokens);
  return patches;
}

void read_sizes(const JsonValue& object, TransformerConfig& c) {
  set(object, "sequence", c.sequence);
  set(object, "vocabulary", c.vocabulary);
  set(object, "layers", c.layers);
  set(object, "hidden", c.hidden);
  set(object, "heads", c.heads);
  set(object, "kv_heads", c.kv_heads);
  set(object, "head_dim", c.head_dim);
  set(object, "ffn", c.ffn);
  set(object, "position_rows", c.position_rows);
  set(object, "relative_buckets", c.relative_buckets);
  set(object, "rotary_dim", c.rotary_dim);
  set(object, "type_vocabulary", c.type_vocabulary);
  set(object, "embedding_width", c.embedding_width);
  set(object, "classes", c.classes);
  set(object, "decoder_layers", c.decoder_layers);
  set(object, "decoder_sequence", c.decoder_sequence);
  set(object, "decoder_heads", c.decoder_heads);
  set(object, "decoder_ffn", c.decoder_ffn);
}

void read_switches(const JsonValue& object, TransformerConfig& c) {
  set(object, "gated", c.gated);
  set(object, "fused_qkv", c.fused_qkv);
  if (c.gated) c.activation = Function::silu;
  if (const auto activation = object.find("activation"))
    c.activation = static_cast<Function>(activation->choice(function_names()));
  set(object, "qkv_bias", c.qkv_bias);
  set(object, "projection_bias", c.projection_bias);
  set(object, "mlp_bias", c.mlp_bias);
  set(object, "head_bias", c.head_bias);
  set(object, "norm_affine", c.norm_affine);
  set(object, "wide_norm", c.wide_norm);
  set(object, "final_norm", c.final_norm);
  set(object, "embedding_norm", c.embedding_norm);
  set(object, "parallel", c.parallel);
  set(object, "attention_sinks", c.attention_sinks);
  set(object, "shared_norm", c.shared_norm);
  set(object, "tied", c.tied);
  set(object, "relative_everywhere", c.relative_everywhere);
  set(object, "narrow_embedding", c.narrow_embedding);
  set(object, "shared_layers", c.shared_layers);
  set(object, "pooler", c.pooler);
  set(object, "classifier_bias", c.classifier_bias);
  set(object, "causal", c.causal);
  set(object, "dropout", c.dropout);
  set(object, "norm", {"layer", "rms"}, c.norm);
  set(object, "norm_place", {"before", "sandwich", "after", "after_adding"}, c.norm_place);
  set(object, "qk_norm", {"none", "per_head", "whole"}, c.qk_norm);
  set(object, "qk_norm_kind", {"layer", "rms"}, c.qk_norm_kind);
  set(object, "positions", {"none", "learned", "rotary", "relative"}, c.positions);
  set(object, "head", {"none", "language_model", "masked", "pretraining", "classifier"}, c.head);
}

}  // namespace

TransformerConfig read_transformer_config(const JsonValue& object) {
  object.allow_only({"sequence",
                     "vocabulary",
                     "layers",
                     "hidden",
                     "heads",
                     "kv_heads",
                     "head_dim",
                     "ffn",
                     "position_rows",
                     "relative_buckets",
                     "rotary_dim",
                     "type_vocabulary",
                     "embedding_width",
                     "classes",
                     "decoder_layers",
                     "decoder_sequence",
                     "decoder_heads",
                     "decoder_ffn",
                     "relative_everywhere",
                     "narrow_embedding",
                     "shared_layers",
                     "gated",
                     "fused_qkv",
                     "activation",
                     "qkv_bias",
                     "projection_bias",
                     "mlp_bias",
                     "head_bias",
                     "norm_affine",
                     "wide_norm",
                     "final_norm",
                     "embedding_norm",
                     "parallel",
                     "attention_sinks",
                     "shared_norm",
                     "tied",
                     "pooler",
                     "classifier_bias",
                     "causal",
                     "dropout",
                     "norm",
                     "norm_place",
                     "qk_norm",
                     "qk_norm_kind",
                     "positions",
                     "head",
                     "moe",
                     "mla",
                     "patches"});
  TransformerConfig c;
  read_sizes(object, c);
  read_switches(object, c);
  if (const auto moe = object.find("moe")) c.moe = read_moe(*moe);
  if (const auto mla = object.find("mla")) c.mla = read_mla(*mla);
  if (const auto patches = object.find("patches")) c.patches = read_patches(*patches);
  if (const std::string fault = fault_of(c); !fault.empty())
    throw InputError(object.where(), fault);
  return c;
}

}  // namespace plait
