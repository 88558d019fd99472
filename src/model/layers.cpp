#include "model/layers.h"

#include <algorithm>
#include <string>

namespace plait {

bool is_layer(const LayerKind& kind) {
  const std::string name = kind.name.substr(0, kind.name.find('.'));
  return name != "embedding" && name != "decoder_embedding" && name != "head" && name != "stem";
}

int layer_count(const Model& model) {
  return static_cast<int>(
      std::ranges::count_if(model.units, [&](int kind) { return is_layer(model.kinds[kind]); }));
}

bool begins_layer(const LayerKind& kind) { return is_layer(kind) && kind.starts_layer; }

int whole_layer_count(const Model& model) {
  return static_cast<int>(std::ranges::count_if(
      model.units, [&](int kind) { return begins_layer(model.kinds[kind]); }));
}

}  // namespace plait
