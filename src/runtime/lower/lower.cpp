#include <map>
#include <memory>
#include <variant>

#include "runtime/lower/exec_op.h"
#include "runtime/lower/resnet_lowering.h"
#include "runtime/lower/transformer_lowering.h"

namespace plait::runtime {
namespace {

// The layers of the model, also when its units are single ops.
std::vector<LayerNames> layers_of(const Model& model) {
  std::vector<LayerNames> layers;
  for (int u = 0; u < model.unit_count(); ++u) {
    const LayerKind& kind = model.unit(u);
    if (kind.starts_layer || layers.empty()) layers.push_back({.name = kind.name, .ops = {}});
    for (const Op& op : kind.ops) layers.back().ops.push_back(op.name);
    const std::string suffix = "." + kind.ops.front().name;
    std::string& name = layers.back().name;
    if (kind.starts_layer && kind.ops.size() == 1 && name.size() > suffix.size() &&
        name.ends_with(suffix))
      name.resize(name.size() - suffix.size());
  }
  return layers;
}

// Makes what a tied op learns that of the first op of the tie: all of it where the op is the same
// one, else the weight (of the logits, that of the embedding).
std::string share(ExecProgram& program, const Tie& tie) {
  const ExecOp& first = program.ops[program.begin[tie.first] + tie.first_op];
  ExecOp& second = program.ops[program.begin[tie.second] + tie.second_op];
  const std::size_t count = first.name == second.name ? first.parameters.size() : 1;
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

// The writer of the architecture's family; nothing, and why, where there is none.
std::unique_ptr<ProgramWriter> writer_of(const Architecture& architecture, ExecProgram& program,
                                         std::string& fault) {
  if (const auto* transformer = std::get_if<TransformerConfig>(&architecture)) {
    if (transformer->mla.kv_rank > 0) fault = "latent attention is not implemented";
    return std::make_unique<TransformerLowering>(*transformer, program);
  }
  if (const auto* resnet = std::get_if<WideResnetConfig>(&architecture))
    return std::make_unique<ResnetLowering>(*resnet, program);
  if (std::holds_alternative<TransganConfig>(architecture))
    fault = "TransGAN is not implemented";
  else if (std::holds_alternative<NotRecorded>(architecture))
    fault =
        "the plan file is from before plait saved what the network is, and its ops do not say it: "
        "make the plan again with plait plan";
  else
    fault = "the model is given as a list of ops, which does not say what the network is";
  return nullptr;
}

}  // namespace

Lowered lower(const Model& model) {
  Lowered out;
  ExecProgram& program = out.program;
  const std::unique_ptr<ProgramWriter> writer = writer_of(model.architecture, program, out.fault);
  if (out.fault.empty()) out.fault = architecture_fault(model);
  if (!out.fault.empty()) return out;
  for (int u = 0, op = 0; u < model.unit_count(); ++u) {
    program.begin.push_back(op);
    program.layer.push_back(model.unit(u).starts_layer);
    op += static_cast<int>(model.unit(u).ops.size());
    if (u + 1 == model.unit_count()) program.begin.push_back(op);
  }
  int number = 0;
  const std::vector<LayerNames> layers = layers_of(model);
  for (const LayerNames& layer : layers) {
    const std::string fault = writer->write_layer(layer);
    if (!fault.empty()) {
      out.fault = "layer " + std::to_string(number) + " (" + layer.name + "): " + fault;
      return out;
    }
    ++number;
  }
  if (!writer->has_loss()) {
    out.fault = "the model has no loss to train on";
    return out;
  }
  for (const Tie& tie : model.ties) {
    out.fault = share(program, tie);
    if (!out.fault.empty()) return out;
  }
  return out;
}

}  // namespace plait::runtime
