#include "io/model/huggingface/fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"

namespace plait {

HfFields::HfFields(const JsonValue& config) : config_(config) {
  for (const auto& [key, value] : config.members())
    if (value.is_null()) null_keys_.push_back(key);
}

std::optional<JsonValue> HfFields::find(Keys keys) const {
  for (const std::string_view key : keys) read_.emplace(key);
  for (const std::string_view key : keys)
    if (auto value = config_.find(key)) return value;
  return std::nullopt;
}

namespace {

// Some configs have false where others have null.
bool says_no(const JsonValue& value) { return value.is_boolean() && !value.boolean(); }

// A number, or a list that says the same number for every layer.
int one_number(const JsonValue& value, int least) {
  if (!value.is_array()) return value.integer(least, kMaxHfSize);
  std::optional<int> number;
  for (const JsonValue& own : value.items()) {
    const int here = own.integer(least, kMaxHfSize);
    if (number && here != *number)
      throw InputError(value.where(), fmt::format("differs from layer to layer ({} and {}), which "
                                                  "is not predicted: write the number that most "
                                                  "layers have",
                                                  *number, here));
    number = here;
  }
  if (!number) throw InputError(value.where(), "is an empty list");
  return *number;
}

}  // namespace

int HfFields::size(Keys keys, int fallback) const {
  const auto value = find(keys);
  return value && !says_no(*value) ? one_number(*value, 1) : fallback;
}

int HfFields::count(Keys keys, int fallback) const {
  const auto value = find(keys);
  return value && !says_no(*value) ? one_number(*value, 0) : fallback;
}

int HfFields::required(Keys keys) const {
  const auto value = find(keys);
  if (!value) throw InputError(where(), fmt::format("'{}' is missing", fmt::join(keys, "' or '")));
  return one_number(*value, 1);
}

bool HfFields::flag(Keys keys, bool fallback) const {
  const auto value = find(keys);
  return value ? value->boolean() : fallback;
}

bool HfFields::dropout(Keys keys, double fallback) const {
  const auto value = find(keys);
  return (value ? value->at_least(0) : fallback) > 0;
}

std::string HfFields::text(Keys keys, std::string fallback) const {
  const auto value = find(keys);
  return value ? value->text() : std::move(fallback);
}

bool HfFields::is_null(std::string_view key) const {
  read_.emplace(key);
  return std::ranges::find(null_keys_, key) != null_keys_.end();
}

void read_llama_block(const HfFields& fields, const HfDefaults& defaults, TransformerConfig& c) {
  c.vocabulary = fields.size({"vocab_size"}, defaults.vocabulary);
  c.hidden = fields.size({"hidden_size"}, defaults.hidden);
  c.ffn = fields.size({"intermediate_size"}, defaults.ffn);
  c.layers = fields.size({"num_hidden_layers"}, defaults.layers);
  c.heads = fields.size({"num_attention_heads"}, defaults.heads);
  c.kv_heads = fields.is_null("num_key_value_heads")
                   ? c.heads
                   : fields.size({"num_key_value_heads"}, defaults.kv_heads);
  c.head_dim = fields.size({"head_dim"}, defaults.head_dim);
  c.sequence = fields.size({"max_position_embeddings"}, defaults.positions);
  c.tied = fields.flag({"tie_word_embeddings"}, defaults.tied);
  c.gated = true;
  c.norm = NormKind::rms;
  c.positions = Positions::rotary;
  c.qkv_bias = c.projection_bias = c.mlp_bias = false;
  c.dropout = false;
}

void read_latent_attention(const HfFields& fields, TransformerConfig& c) {
  c.mla.q_rank = fields.is_null("q_lora_rank") ? 0 : fields.size({"q_lora_rank"}, 1536);
  c.mla.kv_rank = fields.size({"kv_lora_rank"}, 512);
  c.mla.nope_dim = fields.size({"qk_nope_head_dim"}, 128);
  c.mla.rope_dim = fields.size({"qk_rope_head_dim"}, 64);
  c.mla.value_dim = fields.size({"v_head_dim"}, 128);
  c.kv_heads = 0;
  c.head_dim = 0;
  c.qkv_bias = c.projection_bias = fields.flag({"attention_bias"}, false);
}

}  // namespace plait
