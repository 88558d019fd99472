#include "runtime/lower/exec_op.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "runtime/lower/layer_lowering.h"

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
};

// Every op of the model, in execution order.
std::vector<Op> ops_of(const Model& model) {
  std::vector<Op> ops;
  for (int u = 0; u < model.unit_count(); ++u)
    ops.insert(ops.end(), model.unit(u).ops.begin(), model.unit(u).ops.end());
  return ops;
}

// The layers of the model, also when its units are single ops.
std::vector<Layer> layers_of(const Model& model, const std::vector<Op>& ops) {
  std::vector<Layer> layers;
  const Op* next = ops.data();
  for (int u = 0; u < model.unit_count(); ++u) {
    const LayerKind& kind = model.unit(u);
    if (kind.starts_layer || layers.empty()) layers.push_back({.name = kind.name, .ops = {}});
    for (std::size_t i = 0; i < kind.ops.size(); ++i) layers.back().ops.push_back(next++);
    const std::string suffix = "." + kind.ops.front().name;
    std::string& name = layers.back().name;
    if (kind.starts_layer && kind.ops.size() == 1 && name.size() > suffix.size() &&
        name.ends_with(suffix))
      name.resize(name.size() - suffix.size());
  }
  return layers;
}

// Positions of a tie's ops among all ops of the model.
struct Positions {
  int first = 0;
  int second = 0;
};

Positions positions_of(const ExecProgram& program, const Tie& tie) {
  return {program.begin[tie.first] + tie.first_op, program.begin[tie.second] + tie.second_op};
}

// An op that is another one run again, as in ALBERT's blocks, counts no parameters; it has the
// shape of the other only with them.
void fill_repeats(const ExecProgram& program, const std::vector<Tie>& ties, std::vector<Op>& ops) {
  for (const Tie& tie : ties) {
    const Positions at = positions_of(program, tie);
    Op filled = ops[at.second];
    filled.parameters = ops[at.first].parameters;
    if (filled == ops[at.first]) ops[at.second] = std::move(filled);
  }
}

// Makes what a tied op learns that of the first op of the tie: all of it where the op is the same,
// else the weight (of the logits, that of the embedding).
std::string share(ExecProgram& program, const std::vector<Op>& ops, const Tie& tie) {
  const Positions at = positions_of(program, tie);
  const ExecOp& first = program.ops[at.first];
  ExecOp& second = program.ops[at.second];
  const std::size_t count = ops[at.first] == ops[at.second] ? first.parameters.size() : 1;
  if (first.parameters.size() < count || second.parameters.size() < count || count == 0)
    return "'" + second.name + "' is tied to '" + first.name + "', but one of them learns nothing";
  for (std::size_t p = 0; p < count; ++p) {
    if (first.parameters[p].shape != second.parameters[p].shape)
      return "'" + second.name + "' is tied to '" + first.name + "', which has another shape";
    second.parameters[p] = first.parameters[p];
    second.parameters[p].owned = false;
  }
  return "";
}

std::string wrong_count(const Op& op, const ExecOp& exec) {
  double count = 0;
  for (const Parameter& parameter : exec.parameters)
    if (parameter.owned) count += parameter.size();
  if (count == op.parameters) return "";
  return "op '" + op.name + "' has " + std::to_string(static_cast<long long>(op.parameters)) +
         " parameters, where " + std::to_string(static_cast<long long>(count)) + " were expected";
}

}  // namespace

Lowered lower(const Model& model) {
  Lowered out;
  ExecProgram& program = out.program;
  std::vector<Op> ops = ops_of(model);
  for (int u = 0, op = 0; u < model.unit_count(); ++u) {
    program.begin.push_back(op);
    program.layer.push_back(model.unit(u).starts_layer);
    op += static_cast<int>(model.unit(u).ops.size());
  }
  program.begin.push_back(static_cast<int>(ops.size()));
  fill_repeats(program, model.ties, ops);
  LayerLowering lowering(program);
  int number = 0;
  for (const Layer& layer : layers_of(model, ops)) {
    const std::string fault = lowering.layer(number, layer.name, layer.ops);
    if (!fault.empty()) {
      out.fault = "layer " + std::to_string(number) + " (" + layer.name + "): " + fault;
      return out;
    }
    ++number;
  }
  if (program.ops.empty() || !lowering.has_loss()) {
    out.fault = "the model has no loss to train on";
    return out;
  }
  for (const Tie& tie : model.ties) {
    out.fault = share(program, ops, tie);
    if (!out.fault.empty()) return out;
  }
  int position = 0;
  for (int u = 0; u < model.unit_count(); ++u)
    for (const Op& op : model.unit(u).ops) {
      out.fault = wrong_count(op, program.ops[position++]);
      if (!out.fault.empty()) {
        out.fault = "layer '" + model.unit(u).name + "': " + out.fault;
        return out;
      }
    }
  return out;
}

}  // namespace plait::runtime
