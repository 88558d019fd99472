#include "model/model.h"

#include <utility>

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
                            .starts_layer = &op == &kind.ops.front()});
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
