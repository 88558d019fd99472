#pragma once

#include <optional>
#include <string>

#include "io/format/json_reader.h"
#include "io/model/loaded_model.h"

namespace plait {

// plait's own model file, version 1 (docs/files.md#model): {"plait_model": 1, "name": ...} and one
// of "transformer", "wide_resnet", "transgan" (the switches of the builder of that name) or "kinds"
// and "units" (every op spelt out, for models that no builder knows).
LoadedModel read_plait_model(const JsonValue& root, std::optional<int> sequence);

// The file that read_plait_model gives the same Model back from: the switches of the builder that
// made the model, else every op spelt out.
std::string write_plait_model(const Model& model);

}  // namespace plait
