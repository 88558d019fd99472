#pragma once

#include <vector>

#include "model/model.h"

namespace plait {

// What people count as a layer of the model: every unit but embeddings, stem and head.
bool is_layer(const LayerKind& kind);
int layer_count(const Model& model);

// Whether a unit is a layer, or the first op of one.
bool begins_layer(const LayerKind& kind);
// Of those, the positions, in order.
std::vector<int> layer_starts(const Model& model);
int whole_layer_count(const Model& model);

}  // namespace plait
