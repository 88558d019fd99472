#pragma once

#include <optional>
#include <string>

#include "io/format/json_reader.h"
#include "io/model/loaded_model.h"
#include "model/transformer.h"

namespace plait {

// plait's own model file, version 1 (docs/files.md#model): {"plait_model": 1, "name": ...} and one
// of "transformer", "wide_resnet", "transgan" (the switches of the builder of that name) or "kinds"
// and "units" (every op spelt out, for models that no builder knows).
LoadedModel read_plait_model(const JsonValue& root, std::optional<int> sequence);

// The "transformer" object alone.
TransformerConfig read_transformer_config(const JsonValue& object);

// The file with every op spelt out; read_plait_model gives the same Model back.
std::string write_plait_model(const Model& model);

}  // namespace plait
