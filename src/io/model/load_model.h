#pragma once

#include <optional>
#include <string>

#include "io/format/json_reader.h"
#include "io/model/loaded_model.h"

namespace plait {

// Finds a model by what the user wrote: a file (or a directory with a config.json), the JSON of one
// itself, else a name of the zoo, also as the hub spells it ("openai-community/gpt2"). A file is
// judged by its content: a plait model file (docs/files.md#model), a Hugging Face config.json, or a
// text with Megatron-LM's flags. Without `sequence` the source's own is taken. Throws InputError;
// an unknown name is answered with the nearest known one.
LoadedModel load_model(const std::string& name_or_path, std::optional<int> sequence);

// A JSON document of either kind.
LoadedModel read_model(const JsonValue& root, std::optional<int> sequence);

}  // namespace plait
