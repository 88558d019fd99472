#pragma once

#include <variant>

#include "model/gan_config.h"
#include "model/resnet_config.h"
#include "model/transformer_config.h"

namespace plait {

// No builder made the model: its ops, written out one by one, are all that is known.
struct OpsOnly {
  friend bool operator==(const OpsOnly&, const OpsOnly&) = default;
};

// The model comes from a plan file that was written before architectures were saved.
struct NotRecorded {
  friend bool operator==(const NotRecorded&, const NotRecorded&) = default;
};

// What a network is: the configuration that its builder was given, beside the ops that were derived
// from it. The `name` in a configuration is empty here: Model::name has it.
using Architecture =
    std::variant<OpsOnly, NotRecorded, TransformerConfig, WideResnetConfig, TransganConfig>;

}  // namespace plait
