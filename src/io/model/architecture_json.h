#pragma once

#include <string>

#include "io/format/json_reader.h"
#include "model/architecture.h"

namespace plait {

// Configurations as JSON objects and back, for model files ("transformer": {...}) and plan files
// alike. A field that has its default is left out. The readers throw InputError for unknown keys,
// numbers out of range and configurations with a fault.
std::string dump_config(TransformerConfig config);
std::string dump_config(WideResnetConfig config);
std::string dump_config(TransganConfig config);
TransformerConfig read_transformer_config(const JsonValue& object);
WideResnetConfig read_wide_resnet_config(const JsonValue& object);
TransganConfig read_transgan_config(const JsonValue& object);

// {"transformer": {...}}, {"wide_resnet": {...}}, {"transgan": {...}} or {"ops_only": true}; ""
// where the architecture was not recorded. restore(dump(x)) == x but for the name in it.
std::string dump_architecture(const Architecture& architecture);
Architecture restore_architecture(const JsonValue& object);

}  // namespace plait
