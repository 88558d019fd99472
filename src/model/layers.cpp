#include "model/layers.h"

#include <algorithm>
#include <string_view>

namespace plait {

bool is_layer(const LayerKind& kind) {
  const std::string_view name = std::string_view(kind.name).substr(0, kind.name.find('.'));
  return name != "embedding" && name != "decoder_embedding" && name != "head" && name != "stem";
}

int layer_count(const Model& model) {
  return static_cast<int>(
      std::ranges::count_if(model.units, [&](int kind) { return is_layer(model.kinds[kind]); }));
}

bool begins_layer(const LayerKind& kind) { return is_layer(kind) && kind.starts_layer; }

std::vector<int> layer_starts(const Model& model) {
  std::vector<int> starts;
  for (int u = 0; u < model.unit_count(); ++u)
    if (begins_layer(model.unit(u))) starts.push_back(u);
  return starts;
}

int whole_layer_count(const Model& model) {
  return static_cast<int>(std::ranges::count_if(
      model.units, [&](int kind) { return begins_layer(model.kinds[kind]); }));
}

}  // namespace plait
