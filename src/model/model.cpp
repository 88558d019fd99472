#include "model/model.h"

#include <utility>

#include "model/layers.h"

namespace plait {

std::string fault_of(const Op& op) {
  const bool shaped =
      op.kind == OpKind::matmul || op.kind == OpKind::convolution || op.kind == OpKind::attention;
  if (!shaped || (op.rows > 0 && op.inner > 0 && op.columns > 0 && op.count > 0)) return "";
  return "'" + op.name + "' needs 'rows', 'inner' and 'columns' above 0";
}

double LayerKind::parameters() const {
  double sum = 0;
  for (const Op& op : ops) sum += op.parameters;
  return sum;
}

Flops LayerKind::forward() const {
  Flops sum;
  for (const Op& op : ops) sum += op.forward;
  return sum;
}

double Model::parameters() const {
  std::vector<double> per_kind;
  for (const LayerKind& kind : kinds) per_kind.push_back(kind.parameters());
  double sum = 0;
  for (const int kind : units) sum += per_kind[kind];
  return sum;
}

Flops Model::forward() const {
  std::vector<Flops> per_kind;
  for (const LayerKind& kind : kinds) per_kind.push_back(kind.forward());
  Flops sum;
  for (const int kind : units) sum += per_kind[kind];
  return sum;
}

Model with_frozen_layers(const Model& model, int layers) {
  Model out = model;
  std::vector<int> frozen(model.kinds.size(), -1);  // by kind: the same kind, frozen
  int left = layers;
  for (int& unit : out.units) {
    const bool counts = is_layer(model.kinds[unit]);
    if (counts && left-- == 0) break;
    int& kind = frozen[unit];
    if (kind < 0) {
      kind = static_cast<int>(out.kinds.size());
      out.kinds.push_back(model.kinds[unit]);
      out.kinds.back().frozen = true;
    }
    unit = kind;
  }
  return out;
}

Model at_op_granularity(const Model& model) {
  Model fine = model;
  fine.kinds.clear();
  fine.units.clear();
  std::vector<int> first_kind;  // of the ops of each layer kind
  for (const LayerKind& kind : model.kinds) {
    first_kind.push_back(static_cast<int>(fine.kinds.size()));
    for (const Op& op : kind.ops)
      fine.kinds.push_back({.name = kind.name + "." + op.name,
                            .ops = {op},
                            .output = op.boundary,
                            .starts_layer = &op == &kind.ops.front(),
                            .frozen = kind.frozen});
  }
  std::vector<int> first_unit;  // of each layer, to move the ties
  for (const int kind : model.units) {
    first_unit.push_back(fine.unit_count());
    for (int op = 0; op < static_cast<int>(model.kinds[kind].ops.size()); ++op)
      fine.units.push_back(first_kind[kind] + op);
  }
  for (Tie& tie : fine.ties) {
    tie.first = first_unit[tie.first] + std::exchange(tie.first_op, 0);
    tie.second = first_unit[tie.second] + std::exchange(tie.second_op, 0);
  }
  return fine;
}

}  // namespace plait
