#include <algorithm>

#include "io/model/huggingface/fields.h"

namespace plait {
namespace {

void read_stablelm(const HfFields& fields, TransformerConfig& c) {
  read_llama_block(
      fields, {.vocabulary = 50304, .hidden = 2560, .ffn = 6912, .kv_heads = 32, .positions = 4096},
      c);
  c.norm = NormKind::layer;
  c.qkv_bias = fields.flag({"use_qkv_bias"}, false);
  c.parallel = c.shared_norm = fields.flag({"use_parallel_residual"}, false);
  if (fields.flag({"qk_layernorm"}, false)) c.qk_norm = QkNorm::each_head;
  c.dropout = fields.dropout({"hidden_dropout"}, 0);
}

void read_cohere(const HfFields& fields, TransformerConfig& c) {
  read_llama_block(fields,
                   {.vocabulary = 256000,
                    .hidden = 8192,
                    .ffn = 22528,
                    .layers = 40,
                    .heads = 64,
                    .positions = 8192,
                    .tied = true},
                   c);
  c.qkv_bias = c.projection_bias = fields.flag({"attention_bias"}, false);
  c.parallel = c.shared_norm = true;
  c.norm = NormKind::layer;
  c.norm_shift = false;
  if (fields.flag({"use_qk_norm"}, false)) c.qk_norm = QkNorm::each_head;
}

constexpr HfDefaults kGlm = {.vocabulary = 151552,
                             .ffn = 13696,
                             .layers = 40,
                             .kv_heads = 2,
                             .head_dim = 128,
                             .positions = 131072};

void read_glm(const HfFields& fields, TransformerConfig& c) {
  read_llama_block(fields, kGlm, c);
  c.qkv_bias = fields.flag({"attention_bias"}, true);
}

void read_glm4(const HfFields& fields, TransformerConfig& c) {
  read_glm(fields, c);
  c.norm_place = NormPlace::sandwich;
}

void read_nemotron(const HfFields& fields, TransformerConfig& c) {
  read_llama_block(
      fields, {.vocabulary = 256000, .hidden = 6144, .ffn = 24576, .heads = 48, .positions = 4096},
      c);
  c.gated = false;
  c.norm = NormKind::layer;
  c.qkv_bias = c.projection_bias = fields.flag({"attention_bias"}, false);
  c.mlp_bias = fields.flag({"mlp_bias"}, false);
}

void read_seed_oss(const HfFields& fields, TransformerConfig& c) {
  read_llama_block(fields,
                   {.vocabulary = 155136,
                    .ffn = 27648,
                    .layers = 64,
                    .heads = 80,
                    .kv_heads = 8,
                    .head_dim = 128,
                    .positions = 524288},
                   c);
  c.qkv_bias = fields.flag({"attention_bias"}, true);
  c.projection_bias = fields.flag({"attention_out_bias"}, false);
  c.mlp_bias = fields.flag({"mlp_bias"}, false);
  c.dropout = fields.dropout({"residual_dropout"}, 0.1);
}

void read_mpt(const HfFields& fields, TransformerConfig& c) {
  c.vocabulary = fields.size({"vocab_size"}, 50368);
  c.hidden = fields.size({"d_model", "hidden_size"}, 2048);
  c.layers = fields.size({"n_layers", "num_hidden_layers"}, 24);
  c.heads = fields.size({"n_heads", "num_attention_heads"}, 16);
  const long long wide = 1LL * fields.size({"expansion_ratio"}, 4) * c.hidden;
  c.ffn = static_cast<int>(std::min<long long>(wide, kMaxHfSize));
  c.sequence = fields.size({"max_seq_len"}, 2048);
  c.tied = fields.flag({"tie_word_embeddings"}, true);
  c.dropout = fields.dropout({"resid_pdrop"}, 0);
  c.norm_shift = false;
  c.positions = Positions::alibi;
  c.qkv_bias = c.projection_bias = c.mlp_bias = false;
}

}  // namespace

std::vector<HfFamily> hf_llama_variants() {
  return {{"stablelm", read_stablelm}, {"cohere", read_cohere}, {"cohere2", read_cohere},
          {"glm", read_glm},           {"glm4", read_glm4},     {"nemotron", read_nemotron},
          {"seed_oss", read_seed_oss}, {"mpt", read_mpt}};
}

}  // namespace plait
