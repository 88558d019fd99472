#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "io/model/huggingface/fields.h"

namespace plait {
namespace {

constexpr int kMostWindows = 100'000;

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
  c.position_offset = c.position_rows > 2 ? 2 : 0;
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

// Words, positions and segments are narrower than the blocks.
void read_electra(const HfFields& fields, TransformerConfig& c) {
  read_bert_sizes(fields, 30522, c);
  c.hidden = fields.size({"hidden_size"}, 256);
  c.heads = fields.size({"num_attention_heads"}, 4);
  c.ffn = fields.size({"intermediate_size"}, 1024);
  c.embedding_width = fields.size({"embedding_size"}, 128);
  c.narrow_embedding = true;
  c.unused_parameters = 0;
}

// Blocks that share their weights, too. Several groups of blocks are not known of any model.
void read_albert(const HfFields& fields, TransformerConfig& c) {
  read_electra(fields, c);
  if (!fields.find({"vocab_size"})) c.vocabulary = 30000;
  c.hidden = fields.size({"hidden_size"}, 4096);
  c.heads = fields.size({"num_attention_heads"}, 64);
  c.ffn = fields.size({"intermediate_size"}, 16384);
  c.dropout = fields.dropout({"hidden_dropout_prob"}, 0);
  c.shared_layers = true;
  for (const std::string_view key : {"num_hidden_groups", "inner_group_num"})
    if (fields.size({key}, 1) != 1)
      throw InputError(fields.where() + "/" + std::string(key),
                       "more than one set of shared weights is not supported");
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

// ModernBERT (arXiv 2412.13663): norms before each part, rotary positions, a gated MLP, no biases,
// and of three layers two that attend to their neighbourhood.
void read_modernbert(const HfFields& fields, TransformerConfig& c) {
  read_bert_sizes(fields, 50368, c);
  c.layers = fields.size({"num_hidden_layers"}, 22);
  c.ffn = fields.size({"intermediate_size"}, 1152);
  c.sequence = fields.size({"max_position_embeddings"}, 8192);
  c.position_rows = 0;
  c.type_vocabulary = 0;
  c.positions = Positions::rotary;
  c.gated = true;
  c.norm_place = NormPlace::before;
  c.norm_shift = fields.flag({"norm_bias"}, false);
  c.final_norm = true;
  // The norm that the first layer lacks stands behind the embedding: as large, and as much work.
  c.embedding_norm = false;
  note(c, "a first norm that the residuals pass, too");
  c.qkv_bias = c.projection_bias = fields.flag({"attention_bias"}, false);
  c.mlp_bias = fields.flag({"mlp_bias"}, false);
  c.head_bias = fields.flag({"decoder_bias"}, true);
  c.classifier_bias = fields.flag({"classifier_bias"}, false);
  c.dropout = fields.dropout({"mlp_dropout"}, 0);
  c.unused_parameters = 0;
  // Of positions before and after; both bases of their angles.
  if (const int local = fields.count({"local_attention"}, 128); local > 0) {
    c.window.size = local;
    const int every = fields.size({"global_attn_every_n_layers"}, 3);
    for (int layer = 0; layer < std::min(c.layers, kMostWindows); layer += every)
      c.window.full.push_back(layer);
    note(c, "attention to a window on both sides");
  }
  for (const std::string_view key :
       {"global_rope_theta", "local_rope_theta", "classifier_pooling", "classifier_activation"})
    fields.find({key});
}

// A second learnt token answers the teacher.
void read_deit(const HfFields& fields, TransformerConfig& c) {
  read_vit(fields, c);
  c.patches.tokens = 2;
}

}  // namespace

std::string read_unknown_encoder(const HfFields& fields, TransformerConfig& c) {
  needed(fields, {"vocab_size"});
  const int hidden = needed(fields, {"hidden_size", "n_embd", "d_model"});
  const int layers = needed(fields, {"num_hidden_layers", "n_layer", "n_layers", "num_layers"});
  read_bert_sizes(fields, 30522, c);
  c.hidden = hidden;
  c.layers = layers;
  c.heads = fields.size({"num_attention_heads", "n_head", "n_heads", "num_heads"}, 12);
  c.ffn = fields.size({"intermediate_size", "n_inner", "ffn_dim", "d_ff"}, 4 * hidden);
  c.position_rows = c.sequence =
      fields.size({"max_position_embeddings", "n_positions", "max_seq_len"}, 512);
  c.type_vocabulary = fields.count({"type_vocab_size"}, 0);
  return "an encoder like BERT";
}

std::string read_unknown_image_model(const HfFields& fields, TransformerConfig& c) {
  for (const std::string_view key : {"hidden_size", "num_hidden_layers", "num_attention_heads"})
    needed(fields, {key});
  read_vit(fields, c);
  if (!fields.find({"intermediate_size"}))
    c.ffn = static_cast<int>(
        std::min<long long>(1LL * c.hidden * fields.size({"mlp_ratio"}, 4), kMaxHfSize));
  // DINOv2's SwiGLU has two thirds of the width, in steps of 8; DINOv3 says its own.
  const bool thirds = fields.flag({"use_swiglu_ffn"}, false);
  if (thirds) c.ffn = static_cast<int>((c.ffn * 2LL / 3 + 7) / 8 * 8);
  c.gated = thirds || fields.flag({"use_gated_mlp"}, false);
  return c.gated ? "an image model like ViT, with a gated MLP" : "an image model like ViT";
}

std::vector<HfFamily> hf_encoders() {
  return {{"bert", read_bert},
          {"roberta", read_roberta},
          {"xlm-roberta", read_roberta},
          {"distilbert", read_distilbert},
          {"electra", read_electra},
          {"albert", read_albert},
          {"camembert", read_roberta},
          {"modernbert", read_modernbert},
          {"vit", read_vit},
          {"deit", read_deit}};
}

}  // namespace plait
