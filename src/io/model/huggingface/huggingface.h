#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/format/json_reader.h"
#include "model/transformer.h"

namespace plait {

// A transformer's switches as read from somebody else's format, and what had to be assumed.
struct TransformerReading {
  TransformerConfig config;
  std::vector<std::string> warnings;
};

// Reads a Hugging Face config.json. Keys that do not concern the shape of the model are ignored;
// keys that are missing take the default that `transformers` has for that model_type. The head
// follows "architectures" and is the language-model (classifier, for images) one where that is
// absent. Parameter counts equal `transformers`' own. A model_type that is not known is read by the
// usual field names, with a warning that says what was assumed.
//
// The sequence length is the caller's, else the config's, but at most 4096 (with a warning): a
// context length of 131,072 is what a model can read, not what it is trained on.
TransformerReading read_huggingface(const JsonValue& config, std::optional<int> sequence);

// The model_types that are known by name.
std::vector<std::string> huggingface_model_types();

// Why a model of this name cannot be predicted: its name has that of a family that is refused
// ("mamba-2.8b"); "" when it has none.
std::string other_family_named(const std::string& name);

}  // namespace plait
