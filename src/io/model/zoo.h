#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/model/loaded_model.h"
#include "model/transformer.h"

namespace plait {

// The models that are known by name (data/catalogue/models.json), in the catalogue's order, without
// their aliases. Names follow the hub's habits: "gpt2-xl", "llama-2-7b", "mixtral-8x7b".
std::vector<std::string> zoo_names();

struct ZooEntry {
  std::string name;
  std::vector<std::string> aliases;
  std::string source;  // where its sizes come from
};
std::vector<ZooEntry> zoo_entries();

// The model of that name or alias, upper and lower case alike; nothing when there is none. Without
// `sequence` it is the length that the model was trained on.
std::optional<LoadedModel> zoo_model(const std::string& name, std::optional<int> sequence);

// The switches of a transformer of the zoo, for readers that change some of them. Only letters and
// digits of the name count (and points): "GPT OSS 120B" is gpt-oss-120b. Nothing for unknown names
// and for models that are not transformers.
std::optional<TransformerConfig> zoo_transformer(const std::string& name);

// The same by the exact number of parameters.
std::optional<TransformerConfig> zoo_transformer_of(double parameters);

// " (did you mean 'llama-2-7b'?)" or "".
std::string zoo_suggestion(const std::string& name);

}  // namespace plait
