#include <algorithm>

#include "io/model/huggingface/fields.h"

namespace plait {
namespace {

constexpr int kMostMixedLayers = 100'000;

void read_mixtral(const HfFields& fields, TransformerConfig& c) {
  read_llama_block(fields, {.ffn = 14336, .kv_heads = 8, .positions = 131072}, c);
  c.moe.experts = fields.size({"num_local_experts", "num_experts"}, 8);
  c.moe.top_k = fields.size({"num_experts_per_tok"}, 2);
  c.moe.ffn = c.ffn;
}

// Layers without experts, however the config says it: a list of kinds, the first few, every second.
void read_listed_kinds(const JsonValue& kinds, TransformerConfig& c) {
  int layer = 0;
  for (const JsonValue& kind : kinds.items()) {
    if (kind.is_string() ? kind.text() == "dense" : kind.integer(0, kMaxHfSize) == 0)
      c.moe.dense.push_back(layer);
    ++layer;
  }
}

// "mlp_only_layers" lists layers without experts; of the others every "decoder_sparse_step"-th has
// them.
void read_sparse_layers(const HfFields& fields, TransformerConfig& c) {
  c.moe.every = fields.size({"decoder_sparse_step"}, 1);
  if (const auto layers = fields.find({"mlp_only_layers"}))
    for (const JsonValue& layer : layers->items())
      c.moe.dense.push_back(layer.integer(0, kMaxHfSize));
  if (c.moe.experts == 0) c.moe = {};
}

void read_qwen2_moe(const HfFields& fields, TransformerConfig& c) {
  read_llama_block(fields,
                   {.vocabulary = 151936,
                    .hidden = 2048,
                    .ffn = 5632,
                    .layers = 24,
                    .heads = 16,
                    .kv_heads = 16,
                    .positions = 32768},
                   c);
  c.qkv_bias = fields.flag({"qkv_bias"}, true);
  c.moe.experts = fields.count({"num_experts"}, 60);
  c.moe.top_k = fields.size({"num_experts_per_tok"}, 4);
  c.moe.ffn = fields.size({"moe_intermediate_size"}, 1408);
  c.moe.shared_ffn = fields.count({"shared_expert_intermediate_size"}, 5632);
  c.moe.shared_gate = true;
  read_sparse_layers(fields, c);
}

void read_qwen3_moe(const HfFields& fields, TransformerConfig& c) {
  read_llama_block(fields,
                   {.vocabulary = 151936,
                    .hidden = 2048,
                    .ffn = 6144,
                    .layers = 24,
                    .heads = 32,
                    .kv_heads = 4,
                    .positions = 32768},
                   c);
  c.qkv_bias = c.projection_bias = fields.flag({"attention_bias"}, false);
  c.qk_norm = QkNorm::per_head;
  c.moe.experts = fields.count({"num_experts", "num_local_experts"}, 128);
  c.moe.top_k = fields.size({"num_experts_per_tok"}, 8);
  c.moe.ffn = fields.size({"moe_intermediate_size"}, 768);
  read_sparse_layers(fields, c);
}

// Routed and shared experts of one width; the first layers have a plain MLP.
void read_deepseek_experts(const HfFields& fields, int routed, int shared, TransformerConfig& c) {
  c.moe.experts = fields.size({"n_routed_experts", "num_experts", "num_local_experts"}, routed);
  c.moe.ffn = fields.size({"moe_intermediate_size"}, c.moe.ffn);
  c.moe.shared_ffn = fields.count({"n_shared_experts"}, shared) * c.moe.ffn;
  c.moe.every = fields.size({"moe_layer_freq"}, 1);
}

// A token visits experts of a few groups only; a number that does not divide them says nothing.
void read_groups(const HfFields& fields, int groups, int chosen, TransformerConfig& c) {
  c.moe.groups = fields.size({"n_group"}, groups);
  c.moe.chosen_groups = fields.size({"topk_group"}, chosen);
  if (c.moe.experts % c.moe.groups != 0 || c.moe.chosen_groups > c.moe.groups)
    c.moe.groups = c.moe.chosen_groups = 1;
}

void read_deepseek_v2(const HfFields& fields, TransformerConfig& c) {
  read_llama_block(fields, {.vocabulary = 102400}, c);
  read_latent_attention(fields, c);
  c.mlp_bias = fields.flag({"mlp_bias"}, false);
  c.moe.ffn = 1407;
  read_deepseek_experts(fields, 64, 2, c);
  c.moe.top_k = fields.size({"num_experts_per_tok"}, 6);
  c.moe.first_dense = fields.count({"first_k_dense_replace"}, 0);
  if (fields.text({"topk_method"}, "greedy") != "greedy") read_groups(fields, 1, 1, c);
}

void read_deepseek_v3(const HfFields& fields, TransformerConfig& c) {
  read_llama_block(fields,
                   {.vocabulary = 129280,
                    .hidden = 7168,
                    .ffn = 18432,
                    .layers = 61,
                    .heads = 128,
                    .positions = 4096},
                   c);
  read_latent_attention(fields, c);
  c.moe.ffn = 2048;
  read_deepseek_experts(fields, 256, 1, c);
  c.moe.top_k = fields.size({"num_experts_per_tok"}, 8);
  c.moe.first_dense = fields.count({"first_k_dense_replace"}, 3);
  read_groups(fields, 8, 4, c);
}

// DeepSeekMoE (arXiv 2401.06066): ordinary attention; not part of `transformers`.
void read_deepseek(const HfFields& fields, TransformerConfig& c) {
  read_llama_block(fields, {.vocabulary = 102400}, c);
  c.qkv_bias = c.projection_bias = fields.flag({"attention_bias"}, false);
  if (!fields.find({"n_routed_experts"})) return;
  c.moe.ffn = 1407;
  read_deepseek_experts(fields, 64, 0, c);
  c.moe.top_k = fields.size({"num_experts_per_tok"}, 6);
  c.moe.first_dense = fields.count({"first_k_dense_replace"}, 0);
}

void read_olmoe(const HfFields& fields, TransformerConfig& c) {
  read_llama_block(fields,
                   {.vocabulary = 50304,
                    .hidden = 2048,
                    .ffn = 2048,
                    .layers = 16,
                    .heads = 16,
                    .positions = 4096},
                   c);
  c.qkv_bias = c.projection_bias = fields.flag({"attention_bias"}, false);
  c.qk_norm = QkNorm::whole;
  c.moe.experts = fields.size({"num_experts", "num_local_experts"}, 64);
  c.moe.top_k = fields.size({"num_experts_per_tok"}, 8);
  c.moe.ffn = c.ffn;
}

void read_gpt_oss(const HfFields& fields, TransformerConfig& c) {
  read_llama_block(fields,
                   {.vocabulary = 201088,
                    .hidden = 2880,
                    .ffn = 2880,
                    .layers = 36,
                    .heads = 64,
                    .kv_heads = 8,
                    .head_dim = 64,
                    .positions = 131072},
                   c);
  c.qkv_bias = c.projection_bias = fields.flag({"attention_bias"}, true);
  c.attention_sinks = true;
  c.moe.experts = fields.size({"num_local_experts", "num_experts"}, 128);
  c.moe.top_k = fields.size({"num_experts_per_tok"}, 4);
  c.moe.ffn = c.ffn;
  c.moe.bias = c.moe.router_bias = true;
}

void read_glm4_moe(const HfFields& fields, TransformerConfig& c) {
  read_llama_block(fields,
                   {.vocabulary = 151552,
                    .ffn = 10944,
                    .layers = 46,
                    .heads = 96,
                    .kv_heads = 8,
                    .positions = 131072},
                   c);
  if (c.head_dim == 0) c.head_dim = std::max(1, c.hidden / c.heads);  // need not divide
  c.qkv_bias = fields.flag({"attention_bias"}, false);
  if (fields.flag({"use_qk_norm"}, false)) c.qk_norm = QkNorm::per_head;
  c.moe.ffn = 1408;
  read_deepseek_experts(fields, 128, 1, c);
  c.moe.top_k = fields.size({"num_experts_per_tok"}, 8);
  c.moe.first_dense = fields.count({"first_k_dense_replace"}, 1);
}

void read_phimoe(const HfFields& fields, TransformerConfig& c) {
  read_llama_block(fields, {.vocabulary = 32064, .ffn = 6400, .kv_heads = 8, .positions = 131072},
                   c);
  c.norm = NormKind::layer;
  c.qkv_bias = c.projection_bias = fields.flag({"attention_bias"}, false);
  c.head_bias = fields.flag({"lm_head_bias"}, false);
  c.moe.experts = fields.size({"num_local_experts", "num_experts"}, 16);
  c.moe.top_k = fields.size({"num_experts_per_tok"}, 2);
  c.moe.ffn = c.ffn;
}

// "moe_layers" lists the mixtures, else every "interleave_moe_layer_step"-th layer is one; the
// others have an MLP of their own width. The norm of queries and keys learns nothing.
void read_llama4(const HfFields& fields, TransformerConfig& c) {
  read_llama_block(fields,
                   {.vocabulary = 202048,
                    .hidden = 5120,
                    .ffn = 8192,
                    .layers = 48,
                    .heads = 40,
                    .kv_heads = 8,
                    .head_dim = 128,
                    .positions = 4096 * 32},
                   c);
  c.qkv_bias = c.projection_bias = fields.flag({"attention_bias"}, false);
  c.moe.experts = fields.size({"num_local_experts"}, 16);
  c.moe.top_k = fields.size({"num_experts_per_tok"}, 1);
  c.moe.ffn = c.moe.shared_ffn = c.ffn;
  c.ffn = fields.size({"intermediate_size_mlp"}, 16384);
  c.moe.every = fields.size({"interleave_moe_layer_step"}, 1);
  const auto mixtures = fields.find({"moe_layers"});
  if (!mixtures || c.layers > kMostMixedLayers) return;
  c.moe.every = 1;
  std::vector<bool> listed(c.layers);
  for (const JsonValue& layer : mixtures->items()) listed[layer.integer(0, c.layers - 1)] = true;
  for (int layer = 0; layer < c.layers; ++layer)
    if (!listed[layer]) c.moe.dense.push_back(layer);
}

}  // namespace

void read_dense_layers(const HfFields& fields, TransformerConfig& c) {
  c.moe.first_dense =
      fields.count({"first_k_dense_replace", "num_dense_layers", "moe_layer_start_index"}, 0);
  read_sparse_layers(fields, c);
  const auto kinds = fields.find({"mlp_layer_types"});
  const auto every = fields.find({"moe_layer_freq"});
  if (kinds && kinds->is_array())
    read_listed_kinds(*kinds, c);
  else if (every && every->is_array())
    read_listed_kinds(*every, c);
  else if (every)
    c.moe.every = every->integer(1, kMaxHfSize);
}

std::vector<HfFamily> hf_mixtures() {
  return {{"mixtral", read_mixtral},
          {"qwen2_moe", read_qwen2_moe},
          {"qwen3_moe", read_qwen3_moe},
          {"qwen3_vl_moe_text", read_qwen3_moe},
          {"deepseek", read_deepseek},
          {"deepseek_v2", read_deepseek_v2},
          {"deepseek_v3", read_deepseek_v3},
          {"kimi_k2", read_deepseek_v3},
          {"olmoe", read_olmoe},
          {"gpt_oss", read_gpt_oss},
          {"glm4_moe", read_glm4_moe},
          {"phimoe", read_phimoe},
          {"llama4_text", read_llama4}};
}

}  // namespace plait
