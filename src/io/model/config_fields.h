#pragma once

#include <string_view>
#include <vector>

#include "model/architecture.h"
#include "plan/names.h"

namespace plait {

// Every field of the configurations with its JSON key, in the order of the structs: the one list
// that their reader and their writer share. `visit(key, field)` is called for numbers, switches,
// lists and nested structs, `visit(key, field, names)` for enums. The bindings break the build when
// a struct gains a field. A configuration's name is not among them: the model has it.

using EnumNames = std::vector<std::string_view>;

inline const EnumNames kNormKinds = {"layer", "rms"};
inline const EnumNames kNormPlaces = {"before", "sandwich", "after", "after_adding"};
inline const EnumNames kPositions = {"none",     "learned", "rotary",
                                     "relative", "alibi",   "sinusoidal"};
inline const EnumNames kRotaryScalings = {"none", "linear", "llama3"};
inline const EnumNames kQkNorms = {"none", "per_head", "whole", "each_head"};
inline const EnumNames kHeads = {"none", "language_model", "masked", "pretraining", "classifier"};

template <typename Visit>
void visit_fields(Rotary& config, const Visit& visit) {
  auto& [base, local_base, neighbours, scaling, factor, low_factor, high_factor, trained_positions,
         unturned] = config;
  visit("base", base);
  visit("local_base", local_base);
  visit("neighbours", neighbours);
  visit("scaling", scaling, kRotaryScalings);
  visit("factor", factor);
  visit("low_factor", low_factor);
  visit("high_factor", high_factor);
  visit("trained_positions", trained_positions);
  visit("unturned", unturned);
}

template <typename Visit>
void visit_fields(AttentionWindow& config, const Visit& visit) {
  auto& [size, full] = config;
  visit("size", size);
  visit("full", full);
}

template <typename Visit>
void visit_fields(Moe& config, const Visit& visit) {
  auto& [experts, top_k, groups, chosen_groups, ffn, shared_ffn, shared_gate, bias, router_bias,
         normalised, scale, first_dense, every, dense] = config;
  visit("experts", experts);
  visit("top_k", top_k);
  visit("groups", groups);
  visit("chosen_groups", chosen_groups);
  visit("ffn", ffn);
  visit("shared_ffn", shared_ffn);
  visit("shared_gate", shared_gate);
  visit("bias", bias);
  visit("router_bias", router_bias);
  visit("normalised", normalised);
  visit("scale", scale);
  visit("first_dense", first_dense);
  visit("every", every);
  visit("dense", dense);
}

template <typename Visit>
void visit_fields(Mla& config, const Visit& visit) {
  auto& [q_rank, kv_rank, nope_dim, rope_dim, value_dim] = config;
  visit("q_rank", q_rank);
  visit("kv_rank", kv_rank);
  visit("nope_dim", nope_dim);
  visit("rope_dim", rope_dim);
  visit("value_dim", value_dim);
}

template <typename Visit>
void visit_fields(Patches& config, const Visit& visit) {
  auto& [image, patch, channels, tokens] = config;
  visit("image", image);
  visit("patch", patch);
  visit("channels", channels);
  visit("tokens", tokens);
}

template <typename Visit>
void visit_fields(TransformerConfig& config, const Visit& visit) {
  [[maybe_unused]] auto& [name, sequence, vocabulary, layers, hidden, heads, kv_heads, head_dim,
                          ffn, gated, activation, fused_qkv, qkv_bias, projection_bias, mlp_bias,
                          head_bias, unused_parameters, norm, norm_place, norm_affine, norm_shift,
                          norm_epsilon, wide_norm, final_norm, embedding_norm, parallel,
                          shared_norm, qk_norm, qk_norm_kind, attention_sinks, attention_scale,
                          score_cap, window, positions, position_rows, position_offset,
                          relative_buckets, relative_distance, relative_everywhere, rotary_dim,
                          rotary, type_vocabulary, embedding_width, narrow_embedding, tied,
                          embedding_scale, residual_scale, logit_scale, logit_cap, head, pooler,
                          classes, classifier_bias, causal, dropout, shared_layers, decoder_layers,
                          decoder_sequence, decoder_heads, decoder_ffn, moe, mla, patches,
                          not_modelled, unknown_keys] = config;
  visit("sequence", sequence);
  visit("vocabulary", vocabulary);
  visit("layers", layers);
  visit("hidden", hidden);
  visit("heads", heads);
  visit("kv_heads", kv_heads);
  visit("head_dim", head_dim);
  visit("ffn", ffn);
  visit("gated", gated);
  visit("activation", activation, function_names());
  visit("fused_qkv", fused_qkv);
  visit("qkv_bias", qkv_bias);
  visit("projection_bias", projection_bias);
  visit("mlp_bias", mlp_bias);
  visit("head_bias", head_bias);
  visit("unused_parameters", unused_parameters);
  visit("norm", norm, kNormKinds);
  visit("norm_place", norm_place, kNormPlaces);
  visit("norm_affine", norm_affine);
  visit("norm_shift", norm_shift);
  visit("norm_epsilon", norm_epsilon);
  visit("wide_norm", wide_norm);
  visit("final_norm", final_norm);
  visit("embedding_norm", embedding_norm);
  visit("parallel", parallel);
  visit("shared_norm", shared_norm);
  visit("qk_norm", qk_norm, kQkNorms);
  visit("qk_norm_kind", qk_norm_kind, kNormKinds);
  visit("attention_sinks", attention_sinks);
  visit("attention_scale", attention_scale);
  visit("score_cap", score_cap);
  visit("window", window);
  visit("positions", positions, kPositions);
  visit("position_rows", position_rows);
  visit("position_offset", position_offset);
  visit("relative_buckets", relative_buckets);
  visit("relative_distance", relative_distance);
  visit("relative_everywhere", relative_everywhere);
  visit("rotary_dim", rotary_dim);
  visit("rotary", rotary);
  visit("type_vocabulary", type_vocabulary);
  visit("embedding_width", embedding_width);
  visit("narrow_embedding", narrow_embedding);
  visit("tied", tied);
  visit("embedding_scale", embedding_scale);
  visit("residual_scale", residual_scale);
  visit("logit_scale", logit_scale);
  visit("logit_cap", logit_cap);
  visit("head", head, kHeads);
  visit("pooler", pooler);
  visit("classes", classes);
  visit("classifier_bias", classifier_bias);
  visit("causal", causal);
  visit("dropout", dropout);
  visit("shared_layers", shared_layers);
  visit("decoder_layers", decoder_layers);
  visit("decoder_sequence", decoder_sequence);
  visit("decoder_heads", decoder_heads);
  visit("decoder_ffn", decoder_ffn);
  visit("moe", moe);
  visit("mla", mla);
  visit("patches", patches);
  visit("not_modelled", not_modelled);
  visit("unknown_keys", unknown_keys);
}

template <typename Visit>
void visit_fields(WideResnetConfig& config, const Visit& visit) {
  [[maybe_unused]] auto& [name, blocks, channels, width, classes, image] = config;
  visit("blocks", blocks);
  visit("channels", channels);
  visit("width", width);
  visit("classes", classes);
  visit("image", image);
}

template <typename Visit>
void visit_fields(TransganConfig& config, const Visit& visit) {
  [[maybe_unused]] auto& [name, depths, channels, bottom, window, heads, latent] = config;
  visit("depths", depths);
  visit("channels", channels);
  visit("bottom", bottom);
  visit("window", window);
  visit("heads", heads);
  visit("latent", latent);
}

}  // namespace plait
