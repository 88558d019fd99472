#include "cost/layer/model_layers.h"

#include <algorithm>
#include <map>

#include "model/op_cuts.h"

namespace plait {
namespace {

// The ops of consecutive units as one layer. at_op_granularity() names a unit "layer.op": the layer
// gets its own name back, under which its measurements are kept.
LayerKind joined(const std::vector<LayerKind>& all, const std::vector<int>& kinds) {
  LayerKind layer = all[kinds.front()];
  if (!layer.ops.empty()) {
    const std::string suffix = "." + layer.ops.front().name;
    if (layer.name.size() > suffix.size() && layer.name.ends_with(suffix))
      layer.name.resize(layer.name.size() - suffix.size());
  }
  for (auto kind = kinds.begin() + 1; kind != kinds.end(); ++kind) {
    const std::vector<Op>& ops = all[*kind].ops;
    layer.ops.insert(layer.ops.end(), ops.begin(), ops.end());
  }
  layer.output = all[kinds.back()].output;
  return layer;
}

void add_layers_of_ops(const Model& model, ModelLayers& layers) {
  std::map<std::vector<int>, int> known;
  for (int unit = 0; unit < model.unit_count();) {
    int end = unit + 1;
    while (end < model.unit_count() && !model.unit(end).starts_layer) ++end;
    std::vector<int> kinds(model.units.begin() + unit, model.units.begin() + end);
    const auto [it, is_new] = known.emplace(kinds, static_cast<int>(layers.shapes.size()));
    if (is_new) {
      LayerShape shape{std::move(kinds), std::nullopt};
      if (shape.kinds.size() > 1) shape.together = joined(layers.kinds, shape.kinds);
      layers.shapes.push_back(std::move(shape));
    }
    layers.shape_of.push_back(it->second);
    layers.begin.push_back(unit);
    unit = end;
  }
}

}  // namespace

LayerKind usual_layer(const Model& model, const LayerShape& shape) {
  return shape.together ? joined(model.kinds, shape.kinds) : model.kinds[shape.kinds.front()];
}

ModelLayers layers_of(const Model& model, int cut) {
  ModelLayers layers;
  layers.kinds = model.kinds;
  if (cut > 0)
    for (LayerKind& kind : layers.kinds)
      if (cut < ways_to_cut(kind)) kind.ops.front() = with_cut(kind.ops.front(), cut);
  layers.in_ops = !std::ranges::all_of(model.kinds, &LayerKind::starts_layer);
  layers.input.assign(model.kinds.size(), 0);
  for (int u = 1; u < model.unit_count(); ++u) {
    double& input = layers.input[model.units[u]];
    input = std::max(input, model.unit(u - 1).output);
  }
  if (layers.in_ops) {
    add_layers_of_ops(model, layers);
  } else {
    for (int kind = 0; kind < static_cast<int>(model.kinds.size()); ++kind)
      layers.shapes.push_back({{kind}, std::nullopt});
    layers.shape_of = model.units;
    layers.begin.resize(model.units.size());
    for (int u = 0; u < model.unit_count(); ++u) layers.begin[u] = u;
  }
  layers.begin.push_back(model.unit_count());
  return layers;
}

bool is_table(const LayerKind& layer) {
  return std::ranges::any_of(layer.ops, [](const Op& op) {
    return op.kind == OpKind::loss || op.split == Split::vocabulary;
  });
}

}  // namespace plait
