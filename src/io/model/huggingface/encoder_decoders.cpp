#include <fmt/format.h>

#include "base/error.h"
#include "io/model/huggingface/fields.h"

namespace plait {
namespace {

struct T5Defaults {
  int vocabulary;
  int ffn;
  int layers;
  int heads;
  const char* activation;
};

// `transformers` 5 ties T5's head whatever the config says; a file that an earlier version saved
// means what it says (T5 v1.1 and Flan-T5 have heads of their own).
bool t5_is_tied(const HfFields& fields) {
  const std::string version = fields.text({"transformers_version"}, "5");
  const bool earlier = version.size() > 1 && version[1] == '.' && version[0] < '5';
  return !earlier || fields.flag({"tie_word_embeddings"}, true);
}

void read_t5_like(const HfFields& fields, const T5Defaults& defaults, TransformerConfig& c) {
  c.vocabulary = fields.size({"vocab_size"}, defaults.vocabulary);
  c.hidden = fields.size({"d_model", "hidden_size"}, 512);
  c.layers = fields.size({"num_layers", "num_hidden_layers"}, defaults.layers);
  c.decoder_layers = fields.size({"num_decoder_layers"}, c.layers);
  c.heads = fields.size({"num_heads", "num_attention_heads"}, defaults.heads);
  c.head_dim = fields.size({"d_kv", "head_dim"}, 64);
  c.ffn = fields.size({"d_ff"}, defaults.ffn);
  c.gated = fields.text({"feed_forward_proj"}, defaults.activation).starts_with("gated-");
  c.relative_buckets = fields.size({"relative_attention_num_buckets"}, 32);
  c.relative_distance = fields.size({"relative_attention_max_distance"}, 128);
  c.sequence = fields.size({"n_positions"}, 512);
  c.tied = t5_is_tied(fields);
  c.dropout = fields.dropout({"dropout_rate"}, 0.1);
  c.norm = NormKind::rms;
  c.positions = Positions::relative;
  c.qkv_bias = c.projection_bias = c.mlp_bias = false;
  c.causal = false;
}

void read_t5(const HfFields& fields, TransformerConfig& c) {
  read_t5_like(fields, {32128, 2048, 6, 8, "relu"}, c);
}

void read_mt5(const HfFields& fields, TransformerConfig& c) {
  read_t5_like(fields, {250112, 1024, 8, 6, "gated-gelu"}, c);
}

// A table of relative positions in every block.
void read_umt5(const HfFields& fields, TransformerConfig& c) {
  read_t5_like(fields, {250112, 1024, 8, 6, "gated-gelu"}, c);
  c.relative_everywhere = true;
}

// What tells the descendants of BART apart (arXiv 1910.13461), and the sizes that `transformers`
// gives to each.
struct BartKind {
  bool norm_first = false;  // and a norm after each stack
  bool embedding_norm = true;
  bool learned = true;  // positions; else sines and cosines
  bool kept = true;     // positions have a table
  int spare_rows = 2;   // of that table, before the first position
  int vocabulary = 50265;
  int hidden = 1024;
  int encoder_layers = 12;
  int decoder_layers = 12;
  int heads = 16;
  int ffn = 4096;
  int length = 1024;
};

void read_bart_like(const HfFields& fields, const BartKind& kind, TransformerConfig& c) {
  c.vocabulary = fields.size({"vocab_size"}, kind.vocabulary);
  c.hidden = fields.size({"d_model"}, kind.hidden);
  c.layers = fields.size({"encoder_layers"}, kind.encoder_layers);
  c.decoder_layers = fields.size({"decoder_layers"}, kind.decoder_layers);
  c.heads = fields.size({"encoder_attention_heads"}, kind.heads);
  c.decoder_heads = fields.size({"decoder_attention_heads"}, kind.heads);
  c.ffn = fields.size({"encoder_ffn_dim"}, kind.ffn);
  c.decoder_ffn = fields.size({"decoder_ffn_dim"}, kind.ffn);
  c.sequence = fields.size({"max_position_embeddings"}, kind.length);
  c.position_rows = kind.kept ? c.sequence + kind.spare_rows : 0;
  c.position_offset = kind.learned ? kind.spare_rows : 0;
  c.positions = kind.learned ? Positions::learned : Positions::sinusoidal;
  c.norm_place = kind.norm_first ? NormPlace::before : NormPlace::after_adding;
  c.final_norm = kind.norm_first;
  c.embedding_norm = kind.embedding_norm;
  c.tied = fields.flag({"tie_word_embeddings"}, true);
  c.dropout = fields.dropout({"dropout"}, 0.1);
  c.causal = false;
}

void read_bart(const HfFields& fields, TransformerConfig& c) { read_bart_like(fields, {}, c); }

void read_mbart(const HfFields& fields, TransformerConfig& c) {
  read_bart_like(fields, {.norm_first = true}, c);
}

void read_mvp(const HfFields& fields, TransformerConfig& c) {
  read_bart_like(fields, {.vocabulary = 50267}, c);
}

void read_plbart(const HfFields& fields, TransformerConfig& c) {
  read_bart_like(fields,
                 {.vocabulary = 50005,
                  .hidden = 768,
                  .encoder_layers = 6,
                  .decoder_layers = 6,
                  .heads = 12,
                  .ffn = 3072},
                 c);
}

void read_pegasus(const HfFields& fields, TransformerConfig& c) {
  read_bart_like(
      fields, {.norm_first = true, .embedding_norm = false, .learned = false, .spare_rows = 0}, c);
}

void read_marian(const HfFields& fields, TransformerConfig& c) {
  read_bart_like(
      fields, {.embedding_norm = false, .learned = false, .spare_rows = 0, .vocabulary = 58101}, c);
}

// Also NLLB. Positions are computed.
void read_m2m_100(const HfFields& fields, TransformerConfig& c) {
  read_bart_like(fields,
                 {.norm_first = true,
                  .embedding_norm = false,
                  .learned = false,
                  .kept = false,
                  .vocabulary = 128112},
                 c);
}

void read_blenderbot(const HfFields& fields, TransformerConfig& c) {
  read_bart_like(fields,
                 {.norm_first = true,
                  .embedding_norm = false,
                  .spare_rows = 0,
                  .vocabulary = 8008,
                  .hidden = 2560,
                  .encoder_layers = 2,
                  .decoder_layers = 24,
                  .heads = 32,
                  .ffn = 10240,
                  .length = 128},
                 c);
}

void read_blenderbot_small(const HfFields& fields, TransformerConfig& c) {
  read_bart_like(fields,
                 {.spare_rows = 0,
                  .hidden = 512,
                  .encoder_layers = 8,
                  .decoder_layers = 8,
                  .ffn = 2048,
                  .length = 512},
                 c);
}

}  // namespace

std::string read_unknown_encoder_decoder(const HfFields& fields, TransformerConfig& c) {
  if (fields.count({"num_experts", "num_local_experts"}, 0) > 1)
    throw InputError(fields.where(), "an encoder-decoder with experts is not supported");
  if (fields.find({"d_kv"})) {
    needed(fields, {"vocab_size"});
    needed(fields, {"d_model"});
    read_t5(fields, c);
    return "an encoder and a decoder like T5";
  }
  for (const std::string_view key : {"vocab_size", "d_model", "encoder_layers", "decoder_layers"})
    needed(fields, {key});
  read_bart(fields, c);
  return "an encoder and a decoder like BART";
}

std::vector<HfFamily> hf_encoder_decoders() {
  return {{"t5", read_t5},
          {"mt5", read_mt5},
          {"umt5", read_umt5},
          {"bart", read_bart},
          {"mbart", read_mbart},
          {"mvp", read_mvp},
          {"plbart", read_plbart},
          {"pegasus", read_pegasus},
          {"marian", read_marian},
          {"m2m_100", read_m2m_100},
          {"blenderbot", read_blenderbot},
          {"blenderbot-small", read_blenderbot_small}};
}

}  // namespace plait
