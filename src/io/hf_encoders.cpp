#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "io/hf_fields.h"

namespace plait {
namespace {

void read_bert_sizes(const HfFields& fields, int vocabulary, TransformerConfig& c) {
  if (fields.flag({"add_cross_attention"}, false))
    throw InputError(fields.where() + "/add_cross_attention",
                     "cross attention to another model is not supported");
  c.vocabulary = fields.size({"vocab_size"}, vocabulary);
  c.hidden = fields.size({"hidden_size"}, 768);
  c.layers = fields.size({"num_hidden_layers"}, 12);
  c.heads = fields.size({"num_attention_heads"}, 12);
  c.ffn = fields.size({"intermediate_size"}, 3072);
  c.position_rows = c.sequence = fields.size({"max_position_embeddings"}, 512);
  c.type_vocabulary = fields.count({"type_vocab_size"}, 2);
  c.tied = fields.flag({"tie_word_embeddings"}, true);
  c.dropout = fields.dropout({"hidden_dropout_prob"}, 0.1);
  c.causal = fields.flag({"is_decoder"}, false);
  c.norm_place = NormPlace::after_adding;
  c.embedding_norm = true;
  c.final_norm = false;
  c.head = Head::masked;
  c.head_bias = true;
  // Untied, `transformers` has the bias twice: in the head and in its last matrix.
  if (!c.tied) c.unused_parameters = c.vocabulary;
}

void read_bert(const HfFields& fields, TransformerConfig& c) { read_bert_sizes(fields, 30522, c); }

// Positions are counted from pad_token_id + 1, so two rows of the table are never used.
void read_roberta(const HfFields& fields, TransformerConfig& c) {
  read_bert_sizes(fields, 50265, c);
  c.sequence = std::max(1, c.position_rows - 2);
}

// BERT's block without segments; other names for the sizes.
void read_distilbert(const HfFields& fields, TransformerConfig& c) {
  read_bert_sizes(fields, 30522, c);
  c.hidden = fields.size({"dim", "hidden_size"}, 768);
  c.layers = fields.size({"n_layers", "num_hidden_layers"}, 6);
  c.heads = fields.size({"n_heads", "num_attention_heads"}, 12);
  c.ffn = fields.size({"hidden_dim"}, 3072);
  c.type_vocabulary = 0;
  c.dropout = fields.dropout({"dropout"}, 0.1);
  if (!c.tied) c.unused_parameters = 0;  // one bias, of the last matrix
}

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

int side(const HfFields& fields, std::string_view key, int fallback) {
  const auto value = fields.find({key});
  if (!value || !value->is_array()) return fields.size({key}, fallback);
  const std::vector<JsonValue> sides = value->items();
  if (sides.size() != 2 || sides[0].integer(1, kMaxHfSize) != sides[1].integer(1, kMaxHfSize))
    throw InputError(value->where(), "must be one number or two equal ones");
  return sides[0].integer(1, kMaxHfSize);
}

void read_vit(const HfFields& fields, TransformerConfig& c) {
  c.hidden = fields.size({"hidden_size"}, 768);
  c.layers = fields.size({"num_hidden_layers"}, 12);
  c.heads = fields.size({"num_attention_heads"}, 12);
  c.ffn = fields.size({"intermediate_size"}, 3072);
  c.patches.image = side(fields, "image_size", 224);
  c.patches.patch = side(fields, "patch_size", 16);
  c.patches.channels = fields.size({"num_channels"}, 3);
  c.qkv_bias = fields.flag({"qkv_bias"}, true);
  c.dropout = fields.dropout({"hidden_dropout_prob"}, 0);
  c.sequence = 1;
  c.causal = false;
  c.tied = false;
  c.head = Head::classifier;
}

// A second learnt token answers the teacher.
void read_deit(const HfFields& fields, TransformerConfig& c) {
  read_vit(fields, c);
  c.patches.tokens = 2;
}

}  // namespace

std::string read_unknown_encoder(const HfFields& fields, TransformerConfig& c) {
  for (const std::string_view key : {"vocab_size", "hidden_size", "num_hidden_layers"})
    fields.required({key});
  read_bert_sizes(fields, 30522, c);
  c.type_vocabulary = fields.count({"type_vocab_size"}, 0);
  const bool shares = fields.find({"num_hidden_groups"}).has_value();
  return fmt::format("an encoder like BERT{}",
                     shares ? ", every layer with weights of its own" : "");
}

std::vector<HfFamily> hf_encoders() {
  return {{"bert", read_bert},
          {"roberta", read_roberta},
          {"xlm-roberta", read_roberta},
          {"distilbert", read_distilbert},
          {"t5", read_t5},
          {"mt5", read_mt5},
          {"vit", read_vit},
          {"deit", read_deit}};
}

}  // namespace plait
