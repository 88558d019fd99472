#pragma once

// Small models of every family that can be trained, for tests.

#include <string>
#include <vector>

#include "model/resnet.h"
#include "model/transformer.h"

namespace plait::samples {

inline TransformerConfig tiny_gpt() {
  TransformerConfig c{.name = "gpt", .sequence = 16, .vocabulary = 61, .layers = 4, .hidden = 32};
  c.heads = 4;
  return c;
}

inline TransformerConfig tiny_llama() {
  TransformerConfig c = tiny_gpt();
  c.name = "llama";
  c.kv_heads = 2;
  c.ffn = 48;
  c.gated = true;
  c.activation = Function::silu;
  c.qkv_bias = c.projection_bias = c.mlp_bias = c.tied = c.dropout = false;
  c.norm = NormKind::rms;
  c.positions = Positions::rotary;
  return c;
}

inline TransformerConfig tiny_bert() {
  TransformerConfig c = tiny_gpt();
  c.name = "bert";
  c.activation = Function::gelu;
  c.norm_place = NormPlace::after_adding;
  c.final_norm = false;
  c.embedding_norm = true;
  c.type_vocabulary = 2;
  c.head = Head::pretraining;
  c.head_bias = true;
  c.pooler = 32;
  c.causal = false;
  return c;
}

// ALBERT: blocks that share their weights, and a table narrower than they are.
inline TransformerConfig tiny_shared() {
  TransformerConfig c = tiny_bert();
  c.name = "shared";
  c.embedding_width = 16;
  c.narrow_embedding = true;
  c.shared_layers = true;
  c.head = Head::masked;
  c.pooler = 0;
  return c;
}

inline TransformerConfig tiny_t5() {
  TransformerConfig c = tiny_llama();
  c.name = "t5";
  c.kv_heads = 0;
  c.gated = false;
  c.activation = Function::relu;
  c.positions = Positions::relative;
  c.tied = true;
  c.causal = false;
  c.layers = 2;
  c.decoder_layers = 2;
  c.decoder_sequence = 8;
  return c;
}

inline TransformerConfig tiny_mixture() {
  TransformerConfig c = tiny_llama();
  c.name = "mixture";
  c.moe = {.experts = 4, .top_k = 2, .ffn = 16, .shared_ffn = 16, .shared_gate = true};
  c.moe.first_dense = 1;
  c.qk_norm = QkNorm::per_head;
  return c;
}

// GPT-NeoX's two branches side by side.
inline TransformerConfig tiny_parallel(bool shared_norm) {
  TransformerConfig c = tiny_gpt();
  c.name = shared_norm ? "parallel_shared" : "parallel";
  c.parallel = true;
  c.shared_norm = shared_norm;
  c.tied = false;
  c.positions = Positions::rotary;
  c.rotary_dim = 4;
  return c;
}

// BLOOM's positions, of heads whose number is not a power of 2, and MPT's norms, which have no
// shift.
inline TransformerConfig tiny_alibi() {
  TransformerConfig c = tiny_gpt();
  c.name = "alibi";
  c.hidden = 48;
  c.heads = 12;
  c.positions = Positions::alibi;
  c.embedding_norm = true;
  c.norm_shift = false;
  return c;
}

// Gemma 2 and 3: caps, and windows in every second layer, which has a base of its own.
inline TransformerConfig tiny_capped() {
  TransformerConfig c = tiny_llama();
  c.name = "capped";
  c.norm_place = NormPlace::sandwich;
  c.activation = Function::gelu_tanh;
  c.norm_epsilon = 1e-3;
  c.window = {.size = 5, .full = {1, 3}};
  c.rotary.base = 1000;
  c.rotary.local_base = 50;
  c.rotary.scaling = RotaryScaling::linear;
  c.rotary.factor = 4;
  c.score_cap = 2;
  c.logit_cap = 3;
  c.embedding_scale = 6;
  c.attention_scale = 0.3;
  c.tied = true;
  return c;
}

// Scales as Granite has them, SmolLM 3's layers without positions, Llama 3's stretched ones, turned
// by neighbours as Cohere does.
inline TransformerConfig tiny_scaled() {
  TransformerConfig c = tiny_llama();
  c.name = "scaled";
  c.window = {.size = 4, .full = {0}};
  c.residual_scale = 0.5;
  c.embedding_scale = 3;
  c.logit_scale = 0.25;
  c.rotary_dim = 6;
  c.rotary = {.base = 20, .neighbours = true, .scaling = RotaryScaling::llama3, .factor = 8};
  c.rotary.trained_positions = 12;
  c.rotary.unturned = {1};
  return c;
}

// OPT's table of positions, of which the first rows are never read.
inline TransformerConfig tiny_offset() {
  TransformerConfig c = tiny_gpt();
  c.name = "offset";
  c.position_rows = 18;
  c.position_offset = 2;
  return c;
}

// OLMoE's and Qwen 2's experts, of which the chosen ones keep their share of all.
inline TransformerConfig tiny_router() {
  TransformerConfig c = tiny_mixture();
  c.name = "router";
  c.moe.normalised = false;
  c.moe.scale = 1.5;
  return c;
}

inline TransformerConfig tiny_vit() {
  TransformerConfig c = tiny_gpt();
  c.name = "vit";
  c.vocabulary = 0;
  c.patches = {.image = 16, .patch = 4};
  c.head = Head::classifier;
  c.classes = 10;
  c.causal = c.tied = false;
  return c;
}

inline WideResnetConfig tiny_resnet() {
  return {
      .name = "resnet", .blocks = {2, 1}, .channels = 8, .width = 2, .classes = 10, .image = 32};
}

inline std::vector<Model> tiny_models() {
  std::vector<Model> models;
  for (const TransformerConfig& config :
       {tiny_gpt(), tiny_llama(), tiny_bert(), tiny_t5(), tiny_mixture(), tiny_parallel(false),
        tiny_parallel(true), tiny_vit(), tiny_shared(), tiny_alibi(), tiny_capped(), tiny_scaled(),
        tiny_offset(), tiny_router()})
    models.push_back(build_transformer(config));
  models.push_back(build_wide_resnet(tiny_resnet()));
  return models;
}

}  // namespace plait::samples
