#include "runtime/steps.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "runtime/layer_lowering.h"

namespace plait::runtime {

std::vector<Interval> shard_of(const std::vector<Part>& parts, int tensor, int rank) {
  std::vector<Interval> out;
  std::int64_t offset = 0;
  for (const Part& part : parts) {
    Interval mine;
    if (part.pieces == 0) {
      const std::int64_t each = (part.size + tensor - 1) / tensor;
      mine = {std::min(part.size, rank * each), std::min(part.size, (rank + 1) * each)};
    } else {
      const std::int64_t piece = part.size / part.pieces;
      const std::int64_t count = std::max<std::int64_t>(1, part.pieces / tensor);
      const std::int64_t first = part.pieces >= tensor ? rank * count : rank * part.pieces / tensor;
      mine = {first * piece, (first + count) * piece};
    }
    out.push_back({offset + mine.begin, offset + mine.end});
    offset += part.size;
  }
  return out;
}

double Parameter::size() const {
  double product = 1;
  for (const std::int64_t n : shape) product *= static_cast<double>(n);
  return product;
}

namespace {

struct Layer {
  std::string name;  // of its kind: "decoder"
  std::vector<const Op*> ops;
  int first_unit = 0;
};

// The layers of the model, also when its units are single ops.
std::vector<Layer> layers_of(const Model& model) {
  std::vector<Layer> layers;
  for (int u = 0; u < model.unit_count(); ++u) {
    const LayerKind& kind = model.unit(u);
    if (kind.starts_layer || layers.empty()) layers.push_back({.name = kind.name, .first_unit = u});
    for (const Op& op : kind.ops) layers.back().ops.push_back(&op);
    const std::string suffix = "." + kind.ops.front().name;
    std::string& name = layers.back().name;
    if (kind.starts_layer && kind.ops.size() == 1 && name.size() > suffix.size() &&
        name.ends_with(suffix))
      name.resize(name.size() - suffix.size());
  }
  return layers;
}

// Position of an op among all ops of the model.
int position_of(const Steps& steps, int unit, int op) { return steps.begin[unit] + op; }

// Makes the weight of a tied op the one that the first op of the tie owns.
std::string tie(Steps& steps, const Tie& tie) {
  const Step& first = steps.all[position_of(steps, tie.first, tie.first_op)];
  Step& second = steps.all[position_of(steps, tie.second, tie.second_op)];
  if (first.parameters.empty() || second.parameters.empty() ||
      first.parameters[0].shape != second.parameters[0].shape)
    return "'" + second.name + "' is tied to '" + first.name + "', which has another shape";
  second.parameters[0] = first.parameters[0];
  second.parameters[0].owned = false;
  return "";
}

std::string wrong_count(const Op& op, const Step& step) {
  double count = 0;
  for (const Parameter& parameter : step.parameters)
    if (parameter.owned) count += parameter.size();
  if (count == op.parameters) return "";
  return "op '" + op.name + "' has " + std::to_string(static_cast<long long>(op.parameters)) +
         " parameters, where " + std::to_string(static_cast<long long>(count)) + " were expected";
}

}  // namespace

Lowered lower(const Model& model) {
  Lowered out;
  Steps& steps = out.steps;
  LayerLowering lowering(steps);
  const std::vector<Layer> layers = layers_of(model);
  int number = 0;
  for (const Layer& layer : layers) {
    const std::string fault = lowering.layer(number, layer.name, layer.ops);
    if (!fault.empty()) {
      out.fault = "layer " + std::to_string(number) + " (" + layer.name + "): " + fault;
      return out;
    }
    ++number;
  }
  for (int u = 0, op = 0; u < model.unit_count(); ++u) {
    steps.begin.push_back(op);
    steps.layer.push_back(model.unit(u).starts_layer);
    op += static_cast<int>(model.unit(u).ops.size());
  }
  steps.begin.push_back(static_cast<int>(steps.all.size()));
  if (steps.all.empty() || !lowering.has_loss()) {
    out.fault = "the model has no loss to train on";
    return out;
  }
  for (const Tie& one : model.ties) {
    out.fault = tie(steps, one);
    if (!out.fault.empty()) return out;
  }
  int position = 0;
  for (const Layer& layer : layers)
    for (const Op* op : layer.ops) {
      out.fault = wrong_count(*op, steps.all[position++]);
      if (!out.fault.empty()) {
        out.fault = "layer '" + layer.name + "': " + out.fault;
        return out;
      }
    }
  return out;
}

}  // namespace plait::runtime
