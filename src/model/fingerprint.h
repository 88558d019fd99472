#pragma once

#include <string>
#include <string_view>

#include "model/model.h"

namespace plait {

// 16 hexadecimal digits (FNV-1a, 64 bits), the same on every machine.
std::string hashed(std::string_view text);

// Of what decides a unit's cost but for the length of its samples: two units with equal
// fingerprints cost the same at equal degrees, micro-batch and sequence. Its name is not in it.
std::string fingerprint(const Model& model, const LayerKind& kind);

}  // namespace plait
