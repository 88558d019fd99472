#include "runtime/lower/program_writer.h"

#include <algorithm>
#include <utility>

namespace plait::runtime {

std::string ProgramWriter::write_layer(const LayerNames& layer) {
  layer_ = &layer;
  ++number_;
  begin_layer(layer);
  for (const std::string& name : layer.ops) {
    ExecOp exec;
    exec.name = name;
    if (number_ > 0 && alive_.empty()) return "op '" + name + "' follows the loss";
    const std::string fault = write_op(exec);
    if (!fault.empty()) return "op '" + name + "' " + fault;
    for (const auto& [key, tensor] : alive_) exec.alive.push_back(tensor);
    program_.ops.push_back(std::move(exec));
  }
  return "";
}

Parameter& ProgramWriter::add(ExecOp& exec, const std::string& what,
                              std::vector<std::int64_t> shape) {
  Parameter parameter;
  parameter.name = std::to_string(number_) + "." + exec.name + "." + what;
  parameter.shape = std::move(shape);
  if (what == "bias") parameter.start = Start::zeros;
  exec.parameters.push_back(std::move(parameter));
  return exec.parameters.back();
}

void ProgramWriter::add_bias(ExecOp& exec, std::vector<std::int64_t> shape) {
  const int dim = exec.parameters.front().dim;
  const std::vector<Part> parts = exec.parameters.front().parts;
  Parameter& bias = add(exec, "bias", std::move(shape));
  if (dim != 0) return;
  bias.dim = 0;
  bias.parts = parts;
}

void ProgramWriter::alive(const std::string& name, LiveTensor::Cut cut,
                          std::vector<std::int64_t> shape) {
  alive_[name] = {.name = name, .shape = std::move(shape), .cut = cut};
}

void ProgramWriter::alive(const std::string& name, int dim, std::vector<Part> parts,
                          std::vector<std::int64_t> shape) {
  alive_[name] = {.name = name,
                  .shape = std::move(shape),
                  .cut = LiveTensor::Cut::features,
                  .dim = dim,
                  .parts = std::move(parts)};
}

void ProgramWriter::copy(const std::string& from, const std::string& to) {
  LiveTensor tensor = alive_.at(from);
  tensor.name = to;
  alive_[to] = std::move(tensor);
}

const std::vector<std::int64_t>& ProgramWriter::shape_of(const std::string& name) const {
  return alive_.at(name).shape;
}

bool ProgramWriter::layer_has(const std::string& op) const {
  return std::ranges::find(layer_->ops, op) != layer_->ops.end();
}

void ProgramWriter::end_in_loss(ExecOp& exec, std::int64_t classes) {
  exec.kind = ExecOpKind::loss;
  exec.classes = program_.classes = classes;
  program_.labels = shape_of("x")[0];
  exec.cut = alive_.at("x").cut == LiveTensor::Cut::features;
  has_loss_ = true;
  // BERT's second loss reads what was pooled.
  const bool pooled = is_alive("pooled") && layer_has("head.next_sentence");
  const LiveTensor kept = pooled ? alive_.at("pooled") : LiveTensor{};
  alive_.clear();
  if (pooled) alive_["pooled"] = kept;
  alive("loss", LiveTensor::Cut::none, {1});
}

}  // namespace plait::runtime
