#include "base/error.h"
#include "io/model/huggingface/fields.h"

namespace plait {
namespace {

void refuse_cross_attention(const HfFields& fields) {
  if (fields.flag({"add_cross_attention"}, false))
    throw InputError(fields.where() + "/add_cross_attention",
                     "cross attention to another model is not supported");
}

void read_gpt2(const HfFields& fields, TransformerConfig& c) {
  refuse_cross_attention(fields);
  c.vocabulary = fields.size({"vocab_size"}, 50257);
  c.hidden = fields.size({"n_embd", "hidden_size"}, 768);
  c.layers = fields.size({"n_layer", "num_hidden_layers"}, 12);
  c.heads = fields.size({"n_head", "num_attention_heads"}, 12);
  c.ffn = fields.size({"n_inner"}, 0);
  c.position_rows = c.sequence = fields.size({"n_positions", "max_position_embeddings"}, 1024);
  c.tied = fields.flag({"tie_word_embeddings"}, true);
  c.dropout = fields.dropout({"resid_pdrop"}, 0.1);
}

void read_gptj(const HfFields& fields, TransformerConfig& c) {
  c.vocabulary = fields.size({"vocab_size"}, 50400);
  c.hidden = fields.size({"n_embd", "hidden_size"}, 4096);
  c.layers = fields.size({"n_layer", "num_hidden_layers"}, 28);
  c.heads = fields.size({"n_head", "num_attention_heads"}, 16);
  c.ffn = fields.size({"n_inner"}, 0);
  c.sequence = fields.size({"n_positions", "max_position_embeddings"}, 2048);
  c.tied = fields.flag({"tie_word_embeddings"}, false);
  c.dropout = fields.dropout({"resid_pdrop"}, 0);
  c.positions = Positions::rotary;
  c.qkv_bias = c.projection_bias = false;
  c.head_bias = true;
  c.parallel = c.shared_norm = true;
}

// GPT-2 with one key and value head.
void read_gpt_bigcode(const HfFields& fields, TransformerConfig& c) {
  read_gpt2(fields, c);
  if (fields.flag({"multi_query"}, true)) c.kv_heads = 1;
}

void read_gpt_neo(const HfFields& fields, TransformerConfig& c) {
  c.vocabulary = fields.size({"vocab_size"}, 50257);
  c.hidden = fields.size({"hidden_size"}, 2048);
  c.layers = fields.size({"num_layers", "num_hidden_layers"}, 24);
  c.heads = fields.size({"num_heads", "num_attention_heads"}, 16);
  c.ffn = fields.size({"intermediate_size"}, 0);
  c.position_rows = c.sequence = fields.size({"max_position_embeddings"}, 2048);
  c.tied = fields.flag({"tie_word_embeddings"}, true);
  c.dropout = fields.dropout({"resid_dropout"}, 0);
  c.qkv_bias = false;
}

void read_gpt_neox(const HfFields& fields, TransformerConfig& c) {
  c.vocabulary = fields.size({"vocab_size"}, 50432);
  c.hidden = fields.size({"hidden_size"}, 6144);
  c.layers = fields.size({"num_hidden_layers"}, 44);
  c.heads = fields.size({"num_attention_heads"}, 64);
  c.ffn = fields.size({"intermediate_size"}, 24576);
  c.sequence = fields.size({"max_position_embeddings"}, 2048);
  c.tied = fields.flag({"tie_word_embeddings"}, false);
  c.dropout = fields.dropout({"hidden_dropout"}, 0);
  c.positions = Positions::rotary;
  c.qkv_bias = c.projection_bias = fields.flag({"attention_bias"}, true);
  c.parallel = fields.flag({"use_parallel_residual"}, true);
}

// The position table has two rows more than positions. OPT-350M normalises after the addition,
// has no final norm and a narrower token table.
void read_opt(const HfFields& fields, TransformerConfig& c) {
  c.vocabulary = fields.size({"vocab_size"}, 50272);
  c.hidden = fields.size({"hidden_size"}, 768);
  c.layers = fields.size({"num_hidden_layers"}, 12);
  c.heads = fields.size({"num_attention_heads"}, 12);
  c.ffn = fields.size({"ffn_dim"}, 3072);
  c.sequence = fields.size({"max_position_embeddings"}, 2048);
  c.position_offset = 2;
  c.position_rows = c.sequence + c.position_offset;
  c.embedding_width = fields.size({"word_embed_proj_dim"}, c.hidden);
  c.tied = fields.flag({"tie_word_embeddings"}, true);
  c.dropout = fields.dropout({"dropout"}, 0.1);
  c.qkv_bias = c.projection_bias = c.mlp_bias = fields.flag({"enable_bias"}, true);
  c.norm_affine = fields.flag({"layer_norm_elementwise_affine"}, true);
  const bool before = fields.flag({"do_layer_norm_before"}, true);
  c.norm_place = before ? NormPlace::before : NormPlace::after_adding;
  c.final_norm = before && !fields.flag({"_remove_final_layer_norm"}, false);
}

void read_bloom(const HfFields& fields, TransformerConfig& c) {
  c.vocabulary = fields.size({"vocab_size"}, 250880);
  c.hidden = fields.size({"n_embed", "hidden_size"}, 64);
  c.layers = fields.size({"n_layer", "num_hidden_layers"}, 2);
  c.heads = fields.size({"n_head", "num_attention_heads"}, 8);
  c.sequence = fields.size({"seq_length"}, 2048);
  c.tied = fields.flag({"tie_word_embeddings"}, true);
  c.dropout = fields.dropout({"hidden_dropout"}, 0);
  c.positions = Positions::alibi;
  c.embedding_norm = true;
}

void read_falcon(const HfFields& fields, TransformerConfig& c) {
  c.vocabulary = fields.size({"vocab_size"}, 65024);
  c.hidden = fields.size({"n_embed", "hidden_size"}, 4544);
  c.layers = fields.size({"num_hidden_layers", "n_layer"}, 32);
  c.heads = fields.size({"num_attention_heads", "n_head"}, 71);
  c.ffn = fields.size({"ffn_hidden_size"}, 0);
  c.sequence = fields.size({"max_position_embeddings"}, 2048);
  c.tied = fields.flag({"tie_word_embeddings"}, true);
  c.dropout = fields.dropout({"hidden_dropout"}, 0);
  c.qkv_bias = c.projection_bias = c.mlp_bias = fields.flag({"bias"}, false);
  c.positions = fields.flag({"alibi"}, false) ? Positions::alibi : Positions::rotary;
  const bool new_architecture = fields.flag({"new_decoder_architecture"}, false);
  const int groups = fields.size({"num_kv_heads", "n_head_kv"}, c.heads);
  const bool one_head = fields.flag({"multi_query"}, true);  // means nothing beside groups
  if (new_architecture)
    c.kv_heads = groups;
  else
    c.kv_heads = one_head ? 1 : c.heads;
  c.parallel = fields.flag({"parallel_attn"}, true);
  const int norms = fields.size({"num_ln_in_parallel_attn"}, new_architecture ? 2 : 1);
  c.shared_norm = c.parallel && norms != 2;
}

void read_phi(const HfFields& fields, TransformerConfig& c) {
  read_llama_block(
      fields, {.vocabulary = 51200, .hidden = 2048, .ffn = 8192, .layers = 24, .heads = 32}, c);
  c.gated = false;
  c.norm = c.qk_norm_kind = NormKind::layer;
  c.qkv_bias = c.projection_bias = c.mlp_bias = c.head_bias = true;
  c.parallel = c.shared_norm = true;
  c.dropout = fields.dropout({"resid_pdrop"}, 0);
  if (fields.flag({"qk_layernorm"}, false)) c.qk_norm = QkNorm::per_head;
}

void read_phi3(const HfFields& fields, TransformerConfig& c) {
  read_llama_block(
      fields, {.vocabulary = 32064, .hidden = 3072, .ffn = 8192, .layers = 32, .positions = 4096},
      c);
  c.dropout = fields.dropout({"resid_pdrop"}, 0);
}

void read_llama(const HfFields& fields, TransformerConfig& c) {
  read_llama_block(fields, {}, c);
  c.qkv_bias = c.projection_bias = fields.flag({"attention_bias"}, false);
  c.mlp_bias = fields.flag({"mlp_bias"}, false);
}

void read_mistral(const HfFields& fields, TransformerConfig& c) {
  read_llama_block(fields, {.ffn = 14336, .kv_heads = 8, .positions = 131072}, c);
}

void read_qwen2(const HfFields& fields, TransformerConfig& c) {
  read_llama_block(fields, {.vocabulary = 151936, .ffn = 22016, .kv_heads = 32, .positions = 32768},
                   c);
  c.qkv_bias = true;
}

void read_qwen3(const HfFields& fields, TransformerConfig& c) {
  read_llama_block(
      fields,
      {.vocabulary = 151936, .ffn = 22016, .kv_heads = 32, .head_dim = 128, .positions = 32768}, c);
  c.qkv_bias = c.projection_bias = fields.flag({"attention_bias"}, false);
  c.qk_norm = QkNorm::per_head;
}

void read_gemma(const HfFields& fields, TransformerConfig& c) {
  read_llama_block(fields,
                   {.vocabulary = 256000,
                    .hidden = 3072,
                    .ffn = 24576,
                    .layers = 28,
                    .heads = 16,
                    .kv_heads = 16,
                    .head_dim = 256,
                    .positions = 8192,
                    .tied = true},
                   c);
  c.qkv_bias = c.projection_bias = fields.flag({"attention_bias"}, false);
}

constexpr HfDefaults kGemma2 = {.vocabulary = 256000,
                                .hidden = 2304,
                                .ffn = 9216,
                                .layers = 26,
                                .heads = 8,
                                .kv_heads = 4,
                                .head_dim = 256,
                                .positions = 8192,
                                .tied = true};

void read_gemma2(const HfFields& fields, TransformerConfig& c) {
  read_llama_block(fields, kGemma2, c);
  c.qkv_bias = c.projection_bias = fields.flag({"attention_bias"}, false);
  c.norm_place = NormPlace::sandwich;
}

void read_gemma3(const HfFields& fields, TransformerConfig& c) {
  HfDefaults defaults = kGemma2;
  defaults.vocabulary = 262208;
  defaults.positions = 131072;
  read_llama_block(fields, defaults, c);
  c.qkv_bias = c.projection_bias = fields.flag({"attention_bias"}, false);
  c.norm_place = NormPlace::sandwich;
  c.qk_norm = QkNorm::per_head;
}

void read_olmo2(const HfFields& fields, TransformerConfig& c) {
  read_llama_block(fields, {.vocabulary = 50304}, c);
  c.qkv_bias = c.projection_bias = fields.flag({"attention_bias"}, false);
  c.norm_place = NormPlace::after;
  c.qk_norm = QkNorm::whole;
}

void read_olmo(const HfFields& fields, TransformerConfig& c) {
  read_llama_block(fields, {.vocabulary = 50304}, c);
  c.qkv_bias = c.projection_bias = fields.flag({"attention_bias"}, false);
  c.norm = NormKind::layer;
  c.norm_affine = false;
}

void read_smollm3(const HfFields& fields, TransformerConfig& c) {
  read_llama_block(fields,
                   {.vocabulary = 128256,
                    .hidden = 2048,
                    .layers = 36,
                    .heads = 16,
                    .kv_heads = 4,
                    .positions = 32768,
                    .tied = true},
                   c);
  c.qkv_bias = c.projection_bias = fields.flag({"attention_bias"}, false);
  c.mlp_bias = fields.flag({"mlp_bias"}, false);
}

void read_starcoder2(const HfFields& fields, TransformerConfig& c) {
  read_llama_block(fields,
                   {.vocabulary = 49152,
                    .hidden = 3072,
                    .ffn = 12288,
                    .layers = 30,
                    .heads = 24,
                    .kv_heads = 2,
                    .positions = 4096,
                    .tied = true},
                   c);
  c.gated = fields.text({"mlp_type"}, "default") == "gated";
  c.norm = fields.text({"norm_type"}, "layer_norm") == "rms_norm" ? NormKind::rms : NormKind::layer;
  c.qkv_bias = c.projection_bias = c.mlp_bias = fields.flag({"use_bias"}, true);
  c.dropout = fields.dropout({"residual_dropout"}, 0);
}

}  // namespace

std::vector<HfFamily> hf_decoders() {
  return {{"gpt2", read_gpt2},
          {"gptj", read_gptj},
          {"gpt_neo", read_gpt_neo},
          {"codegen", read_gptj},
          {"gpt_bigcode", read_gpt_bigcode},
          {"olmo3", read_olmo2},
          {"qwen2_vl", read_qwen2},
          {"qwen2_5_vl", read_qwen2},
          {"qwen2_vl_text", read_qwen2},
          {"qwen2_5_vl_text", read_qwen2},
          {"qwen3_vl_text", read_qwen3},
          {"gpt_neox", read_gpt_neox},
          {"opt", read_opt},
          {"bloom", read_bloom},
          {"falcon", read_falcon},
          {"phi", read_phi},
          {"phi3", read_phi3},
          {"llama", read_llama},
          {"mistral", read_mistral},
          {"qwen2", read_qwen2},
          {"qwen3", read_qwen3},
          {"gemma", read_gemma},
          {"gemma2", read_gemma2},
          {"gemma3_text", read_gemma3},
          {"olmo2", read_olmo2},
          {"olmo", read_olmo},
          {"granite", read_llama},
          {"smollm3", read_smollm3},
          {"starcoder2", read_starcoder2}};
}

}  // namespace plait
