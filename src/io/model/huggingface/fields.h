#pragma once

#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "io/format/json_reader.h"
#include "model/transformer.h"

namespace plait {

// The keys of a Hugging Face config. Every accessor takes the names that the key goes by (the first
// one present counts) and the default that `transformers` has; null counts as absent.
class HfFields {
 public:
  explicit HfFields(const JsonValue& config);

  using Keys = std::initializer_list<std::string_view>;
  std::optional<JsonValue> find(Keys keys) const;
  // Numbers may stand in a list that has the same one for every layer.
  int size(Keys keys, int fallback) const;   // at least 1
  int count(Keys keys, int fallback) const;  // at least 0
  int required(Keys keys) const;             // at least 1, no default
  bool flag(Keys keys, bool fallback) const;
  bool dropout(Keys keys, double fallback) const;  // whether a probability is above 0
  std::string text(Keys keys, std::string fallback) const;
  // True when the key is there and null: for keys where that differs from being absent.
  bool is_null(std::string_view key) const;
  // Whether any accessor has asked for the key.
  bool was_read(const std::string& key) const { return read_.contains(key); }

  const JsonValue& root() const { return config_; }
  const std::string& where() const { return config_.where(); }

 private:
  JsonValue config_;
  std::vector<std::string> null_keys_;
  mutable std::set<std::string, std::less<>> read_;
};

// The largest value that any size in a config may have.
inline constexpr int kMaxHfSize = 1 << 28;

// Sets the config's switches from the fields; `sequence` is set to what the config can read.
using HfReader = void (*)(const HfFields&, TransformerConfig&);

struct HfFamily {
  std::string_view model_type;
  HfReader read;
};

// The families, by file: decoders of one kind of block; decoders that differ from Llama's in the
// place of norms and biases; mixtures of experts; encoders and vision; encoder-decoders.
std::vector<HfFamily> hf_decoders();
std::vector<HfFamily> hf_llama_variants();
std::vector<HfFamily> hf_mixtures();
std::vector<HfFamily> hf_encoders();
std::vector<HfFamily> hf_encoder_decoders();

// Which layers of a mixture have a plain MLP, by the keys that configs of any family use.
void read_dense_layers(const HfFields& fields, TransformerConfig& c);

// What `transformers` has for the fields that nearly all decoders share; 0 = derived.
struct HfDefaults {
  int vocabulary = 32000;
  int hidden = 4096;
  int ffn = 11008;
  int layers = 32;
  int heads = 32;
  int kv_heads = 0;
  int head_dim = 0;
  int positions = 2048;
  bool tied = false;
};

// The Llama block: RMS norm before, rotary positions, gated MLP, no biases, no dropout.
void read_llama_block(const HfFields& fields, const HfDefaults& defaults, TransformerConfig& c);

// Notes a property of the network that TransformerConfig cannot express.
void note(TransformerConfig& c, std::string feature);

// Reads what does not follow from the shape of the weights: scales, caps, windows, rotary
// positions, how experts are weighed. Called after the family's reader.
void read_features(const HfFields& fields, const std::string& type, TransformerConfig& c);

// Keys that say something, that no reader has asked for, and that are not known to be harmless.
std::vector<std::string> unknown_keys(const HfFields& fields);

// Latent attention by DeepSeek's keys; the ranks default to V2's and V3's common ones.
void read_latent_attention(const HfFields& fields, TransformerConfig& c);

// A field without which nothing can be assumed of an unknown model_type; the message names both.
int needed(const HfFields& fields, HfFields::Keys keys);

// A model_type that is not in any table; all return what was assumed.
std::string read_unknown(const HfFields& fields, TransformerConfig& c);
// "" or why no prediction of a network of this kind can be made.
std::string other_family(const JsonValue& config);
std::string read_unknown_encoder(const HfFields& fields, TransformerConfig& c);
std::string read_unknown_image_model(const HfFields& fields, TransformerConfig& c);
std::string read_unknown_encoder_decoder(const HfFields& fields, TransformerConfig& c);

}  // namespace plait
