// Mixtures of experts.

#include "runtime/lower/transformer_lowering.h"

namespace plait::runtime {

std::string TransformerLowering::router(ExecOp& exec) {
  exec.kind = ExecOpKind::router;
  set_weight(exec, config_.moe.experts, config_.hidden, config_.moe.router_bias);
  if (config_.moe.shared_ffn > 0) {
    exec.keeps_input = true;
    copy("x", "input");
  }
  alive("scores", LiveTensor::Cut::stream, {exec.positions, config_.moe.experts});
  return "";
}

std::string TransformerLowering::top_k(ExecOp& exec) {
  exec.kind = ExecOpKind::top_k;
  exec.experts = config_.moe.experts;
  exec.chosen = config_.moe.top_k;
  exec.normalised = config_.moe.normalised;
  exec.scale = config_.moe.scale;
  exec.may_cut_after = false;
  dead("scores");
  return "";
}

std::string TransformerLowering::experts_up(ExecOp& exec) {
  exec.kind = ExecOpKind::experts_up;
  exec.may_cut_after = false;
  exec.experts = config_.moe.experts;
  exec.gated = config_.gated;
  const std::int64_t ffn = config_.moe.ffn;
  const std::int64_t out = exec.gated ? 2 * ffn : ffn;
  Parameter& weight = add(exec, "weight", {exec.experts, out, config_.hidden});
  weight.dim = 1;
  weight.parts = {{ffn, ffn}};
  if (exec.gated) weight.parts.push_back({ffn, ffn});
  const std::vector<Part> parts = weight.parts;
  if (!config_.moe.bias) return "";
  Parameter& bias = add(exec, "bias", {exec.experts, out});
  bias.dim = 1;
  bias.parts = parts;
  return "";
}

std::string TransformerLowering::experts_activation(ExecOp& exec) {
  exec.kind = ExecOpKind::experts_activation;
  exec.may_cut_after = false;
  exec.function = config_.activation;
  exec.gated = config_.gated;
  return "";
}

std::string TransformerLowering::experts_down(ExecOp& exec) {
  exec.kind = ExecOpKind::experts_down;
  exec.may_cut_after = false;
  exec.experts = config_.moe.experts;
  const std::int64_t ffn = config_.moe.ffn;
  Parameter& weight = add(exec, "weight", {exec.experts, config_.hidden, ffn});
  weight.dim = 2;
  weight.parts = {{ffn, ffn}};
  if (config_.moe.bias)
    add(exec, "bias", {exec.experts, config_.hidden}).gradient = GradientOf::part;
  return "";
}

std::string TransformerLowering::combine(ExecOp& exec) {
  exec.kind = ExecOpKind::combine;
  return "";
}

std::string TransformerLowering::shared_gate(ExecOp& exec) {
  exec.kind = ExecOpKind::shared_gate;
  set_weight(exec, 1, config_.hidden, false);
  alive("gate", LiveTensor::Cut::stream, {exec.positions, 1});
  return "";
}

std::string TransformerLowering::shared_add(ExecOp& exec) {
  exec.kind = ExecOpKind::shared_add;
  dead("routed");
  dead("gate");
  return "";
}

}  // namespace plait::runtime
