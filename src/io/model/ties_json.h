#pragma once

#include <string>
#include <vector>

#include "io/format/json_reader.h"
#include "model/model.h"

namespace plait {

// Ties as a JSON list. Shared layers have one tie for every parameter of every layer: those that go
// on from unit to unit are one entry with their number, `times`.
std::string dump_ties(const std::vector<Tie>& ties);

// `model` has its units and kinds already.
std::vector<Tie> restore_ties(const JsonValue& list, const Model& model);

}  // namespace plait
