#include "search/space/units/layers.h"

#include <algorithm>
#include <map>

namespace plait {
namespace {

// "decoder" of "decoder.attention.core": the name up to that of the op.
std::string layer_name(const LayerKind& first_op) {
  const std::string& op = first_op.ops.front().name;
  if (first_op.name.size() > op.size() + 1 && first_op.name.ends_with("." + op))
    return first_op.name.substr(0, first_op.name.size() - op.size() - 1);
  return first_op.name;
}

LayerKind merged(const Model& model, const std::vector<int>& kinds) {
  LayerKind layer;
  layer.name = layer_name(model.kinds[kinds.front()]);
  for (const int kind : kinds) {
    const LayerKind& part = model.kinds[kind];
    layer.ops.insert(layer.ops.end(), part.ops.begin(), part.ops.end());
  }
  layer.output = model.kinds[kinds.back()].output;
  layer.starts_layer = model.kinds[kinds.front()].starts_layer;
  return layer;
}

}  // namespace

std::optional<LayerView> seen_by_layers(const Model& model) {
  LayerView view{model, {}};
  view.model.kinds.clear();
  view.model.units.clear();
  std::vector<std::vector<int>> layers;  // the kinds of their ops
  std::vector<int> layer_of;             // by op
  for (int u = 0; u < model.unit_count(); ++u) {
    if (u == 0 || model.unit(u).starts_layer) {
      view.first_unit.push_back(u);
      layers.emplace_back();
    }
    layers.back().push_back(model.units[u]);
    layer_of.push_back(static_cast<int>(layers.size()) - 1);
  }
  if (layers.size() == model.units.size()) return std::nullopt;
  std::map<std::vector<int>, int> known;
  for (const std::vector<int>& kinds : layers) {
    const auto [at, is_new] = known.try_emplace(kinds, static_cast<int>(view.model.kinds.size()));
    if (is_new) view.model.kinds.push_back(merged(model, kinds));
    view.model.units.push_back(at->second);
  }
  const auto op_in_layer = [&](int unit, int op) {
    for (int u = view.first_unit[layer_of[unit]]; u < unit; ++u)
      op += static_cast<int>(model.unit(u).ops.size());
    return op;
  };
  for (Tie& tie : view.model.ties) {
    tie.first_op = op_in_layer(tie.first, tie.first_op);
    tie.second_op = op_in_layer(tie.second, tie.second_op);
    tie.first = layer_of[tie.first];
    tie.second = layer_of[tie.second];
  }
  view.first_unit.push_back(model.unit_count());
  return view;
}

Plan in_ops(const Plan& plan, const LayerView& view) {
  Plan fine = plan;
  for (Stage& stage : fine.stages)
    for (Span& span : stage.spans)
      span.units = {view.first_unit[span.units.begin], view.first_unit[span.units.end]};
  return fine;
}

}  // namespace plait
