#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "io/model/huggingface/fields.h"

namespace plait {
namespace {

// By the epsilon's name; where there is none, networks with a plain gelu or relu are of the time of
// layer norms.
bool has_rms_norm(const HfFields& fields) {
  if (fields.find({"rms_norm_eps"})) return true;
  if (fields.find({"layer_norm_eps", "layer_norm_epsilon"})) return false;
  const std::string activation = fields.text({"hidden_act", "activation_function"}, "");
  return !activation.starts_with("gelu") && activation != "relu";
}

bool is_gated(const HfFields& fields, bool rms) {
  const std::string activation = fields.text({"hidden_act", "activation_function"}, "");
  if (activation.empty()) return rms;
  // relu2 and xielu stand alone: Nemotron, Arcee, Apertus.
  if (activation.find("relu") != activation.npos || activation == "xielu") return false;
  return activation.find("silu") != activation.npos || activation.find("swi") != activation.npos ||
         activation.find("glu") != activation.npos || rms;
}

void read_experts(const HfFields& fields, TransformerConfig& c) {
  const int experts =
      fields.count({"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"}, 0);
  if (experts < 2 || !fields.flag({"is_moe"}, true)) return;
  c.moe.experts = experts;
  c.moe.top_k = fields.size({"num_experts_per_tok", "num_experts_per_token", "moe_topk",
                             "moe_top_k", "moe_k", "n_activated_experts", "num_activated_experts",
                             "num_experts_per_topk", "num_selected_experts", "router_top_k"},
                            2);
  c.moe.ffn = fields.size({"moe_intermediate_size", "expert_ffn_hidden_size"}, c.ffn);
  c.moe.shared_ffn = fields.count({"n_shared_experts", "num_shared_experts", "num_shared_expert",
                                   "moe_num_shared_experts"},
                                  0) *
                     c.moe.ffn;
  if (c.moe.shared_ffn == 0)
    c.moe.shared_ffn =
        fields.count({"shared_expert_intermediate_size", "shared_experts_intermediate_size",
                      "moe_shared_expert_intermediate_size"},
                     0);
  read_dense_layers(fields, c);
}

std::string unknown_type(const HfFields& fields) {
  const std::string type = fields.text({"model_type"}, "");
  return type.empty() ? "" : fmt::format("model_type '{}' is not known, and ", type);
}

std::string read_unknown_decoder(const HfFields& fields, TransformerConfig& c) {
  c.vocabulary = needed(fields, {"vocab_size"});
  c.hidden = needed(fields, {"hidden_size", "n_embd", "d_model"});
  c.layers = needed(fields, {"num_hidden_layers", "n_layer", "n_layers", "num_layers"});
  c.heads =
      needed(fields, {"num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads"});
  c.kv_heads = fields.size({"num_key_value_heads", "num_kv_heads", "n_head_kv"}, 0);
  c.head_dim = fields.size({"head_dim", "attention_head_dim", "d_kv"}, 0);
  const bool rms = has_rms_norm(fields);
  c.norm = rms ? NormKind::rms : NormKind::layer;
  c.gated = is_gated(fields, rms);
  c.ffn = fields.size({"intermediate_size", "ffn_dim", "n_inner", "d_ff", "ffn_hidden_size"}, 0);
  c.sequence = fields.size({"max_position_embeddings", "n_positions", "max_seq_len"}, 2048);
  c.positions = Positions::rotary;
  c.qkv_bias =
      fields.flag({"attention_bias", "qkv_bias", "use_qkv_bias", "use_bias", "bias"}, !rms);
  c.projection_bias = fields.flag({"attention_bias", "use_bias", "bias"}, !rms);
  c.mlp_bias = fields.flag({"mlp_bias", "use_bias", "bias"}, !rms);
  c.tied = fields.flag({"tie_word_embeddings"}, false);
  c.dropout = fields.dropout({"resid_pdrop", "hidden_dropout", "hidden_dropout_prob"}, 0);
  if (fields.find({"kv_lora_rank"})) read_latent_attention(fields, c);
  read_experts(fields, c);
  return fmt::format(
      "a decoder with rotary positions, {} norm before each part, {} MLP, {} biases, {} head{}{}",
      rms ? "RMS" : "layer", c.gated ? "gated" : "plain", c.qkv_bias || c.mlp_bias ? "with" : "no",
      c.tied ? "tied" : "untied", c.mla.kv_rank > 0 ? ", latent attention" : "",
      c.moe.experts > 0
          ? fmt::format(", {} experts of which a token visits {}", c.moe.experts, c.moe.top_k)
          : "");
}

// BERT's block with what encoders of later years have, where keys say so: rotary positions, gated
// MLPs, RMS norms before each part without biases.
std::string read_later_encoder(const HfFields& fields, TransformerConfig& c) {
  std::string words = read_unknown_encoder(fields, c);
  if (fields.find({"rope_theta", "rotary_emb_fraction", "rope_parameters"}) ||
      fields.text({"position_embedding_type"}, "") == "rotary") {
    c.positions = Positions::rotary;
    c.position_rows = c.position_offset = 0;
    words += ", with rotary positions";
  }
  const std::string activation =
      fields.text({"hidden_act", "activation_function", "hidden_activation"}, "");
  const bool rms = fields.find({"rms_norm_eps"}).has_value();
  if (activation.find("glu") != activation.npos || (rms && is_gated(fields, rms))) {
    c.gated = true;
    words += ", a gated MLP";
  }
  if (!rms) return words;
  c.norm = NormKind::rms;
  c.norm_place = NormPlace::before;
  c.final_norm = true;
  c.embedding_norm = false;
  c.kv_heads = fields.size({"num_key_value_heads"}, 0);
  c.qkv_bias = c.projection_bias = fields.flag({"attention_bias"}, false);
  c.mlp_bias = fields.flag({"mlp_bias"}, false);
  return words + ", RMS norm before each part";
}

// Segments, or a class whose name says so.
bool is_encoder(const HfFields& fields) {
  if (fields.flag({"is_decoder"}, false)) return false;
  if (fields.find({"type_vocab_size"})) return true;
  const auto classes = fields.find({"architectures"});
  if (!classes || !classes->is_array() || classes->items().empty()) return false;
  return classes->items()[0].text().ends_with("ForMaskedLM");
}

using UnknownReader = std::string (*)(const HfFields&, TransformerConfig&);

UnknownReader reader_of(const HfFields& fields) {
  if (fields.find({"num_mel_bins", "input_feat_per_channel"}))
    throw InputError(fields.where(), unknown_type(fields) + "it reads sound, not text or images");
  const bool two_stacks = fields.find({"encoder_layers"}) && fields.find({"decoder_layers"});
  if (two_stacks || fields.flag({"is_encoder_decoder"}, false)) return read_unknown_encoder_decoder;
  if (!fields.find({"vocab_size"}) && fields.find({"image_size", "num_channels"})) {
    if (!fields.find({"hidden_size"}) || !fields.find({"patch_size"}) || fields.find({"depths"}))
      throw InputError(fields.where(), unknown_type(fields) +
                                           "an image model is a ViT with one hidden_size, "
                                           "num_hidden_layers and patch_size");
    return read_unknown_image_model;
  }
  return is_encoder(fields) ? read_later_encoder : read_unknown_decoder;
}

}  // namespace

int needed(const HfFields& fields, HfFields::Keys keys) {
  if (!fields.find(keys))
    throw InputError(fields.where(), fmt::format("{}'{}' is missing", unknown_type(fields),
                                                 fmt::join(keys, "' or '")));
  return fields.required(keys);
}

std::string read_unknown(const HfFields& fields, TransformerConfig& c) {
  const std::string type = fields.text({"model_type"}, "");
  note(c, type.empty() ? "a config without model_type"
                       : fmt::format("the model_type '{}', which is not known", type));
  return fmt::format(
      "{}: assumed {}",
      type.empty() ? "no model_type" : fmt::format("model_type '{}' is not known", type),
      reader_of(fields)(fields, c));
}

}  // namespace plait
