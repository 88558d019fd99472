// Mixtures of experts, heads and convolutions.

#include <cmath>
#include <utility>

#include "runtime/lower/layer_lowering.h"

namespace plait::runtime {
namespace {

std::int64_t whole(double count) { return std::llround(count); }

}  // namespace

std::string LayerLowering::router(const Op& op, ExecOp& exec) {
  exec.kind = ExecOpKind::router;
  add(exec, "weight", {exec.columns, exec.inner});
  add_bias(op, exec, op.inner * op.columns, {exec.columns});
  if (find("shared.up") != nullptr) {
    exec.keeps_input = true;
    alive_["input"] = alive_.at("x");
    alive_["input"].name = "input";
  }
  alive("scores", LiveTensor::Cut::stream, {exec.positions, exec.columns});
  return "";
}

std::string LayerLowering::top_k(const Op& op, ExecOp& exec) {
  exec.kind = ExecOpKind::top_k;
  const Op* router_op = find("router");
  if (router_op == nullptr) return "has no router before it";
  exec.experts = whole(router_op->columns);
  exec.chosen = whole((op.moved - router_op->rows * router_op->columns) / router_op->rows);
  if (exec.chosen < 1 || exec.chosen > exec.experts) return "chooses no experts";
  exec.may_cut_after = false;
  dead("scores");
  return "";
}

std::string LayerLowering::experts_up(const Op& op, ExecOp& exec) {
  exec.kind = ExecOpKind::experts_up;
  exec.may_cut_after = false;
  const Op* down = find("experts.down");
  if (down == nullptr) return "has no experts.down after it";
  exec.experts = whole(op.count);
  exec.gated = down->inner * 2 == op.columns;
  const std::int64_t ffn = whole(down->inner);
  Parameter& weight = add(exec, "weight", {exec.experts, exec.columns, exec.inner});
  weight.dim = 1;
  weight.parts = {{ffn, ffn}};
  if (exec.gated) weight.parts.push_back({ffn, ffn});
  const std::vector<Part> parts = weight.parts;
  if (op.parameters > op.count * op.inner * op.columns) {
    Parameter& bias = add(exec, "bias", {exec.experts, exec.columns});
    bias.dim = 1;
    bias.parts = parts;
  }
  return "";
}

std::string LayerLowering::experts_activation(const Op&, ExecOp& exec) {
  exec.kind = ExecOpKind::experts_activation;
  exec.may_cut_after = false;
  const Op* up = find("experts.up");
  const Op* down = find("experts.down");
  if (up == nullptr || down == nullptr) return "has no experts around it";
  exec.gated = down->inner * 2 == up->columns;
  return "";
}

std::string LayerLowering::experts_down(const Op& op, ExecOp& exec) {
  exec.kind = ExecOpKind::experts_down;
  exec.may_cut_after = false;
  exec.experts = whole(op.count);
  Parameter& weight = add(exec, "weight", {exec.experts, exec.columns, exec.inner});
  weight.dim = 2;
  weight.parts = {{exec.inner, exec.inner}};
  if (op.parameters > op.count * op.inner * op.columns)
    add(exec, "bias", {exec.experts, exec.columns}).gradient = GradientOf::part;
  return "";
}

std::string LayerLowering::combine(const Op&, ExecOp& exec) {
  exec.kind = ExecOpKind::combine;
  return "";
}

std::string LayerLowering::shared_gate(const Op&, ExecOp& exec) {
  exec.kind = ExecOpKind::shared_gate;
  if (!alive_.contains("input")) return "has no router before it";
  add(exec, "weight", {1, exec.inner});
  alive("gate", LiveTensor::Cut::stream, {exec.positions, 1});
  return "";
}

std::string LayerLowering::shared_add(const Op&, ExecOp& exec) {
  exec.kind = ExecOpKind::shared_add;
  if (!alive_.contains("routed")) return "has no routed experts to add to";
  dead("routed");
  dead("gate");
  return "";
}

std::string LayerLowering::pooler(const Op& op, ExecOp& exec) {
  exec.kind = ExecOpKind::pooler;
  add(exec, "weight", {exec.columns, exec.inner}).gradient = GradientOf::whole;
  add_bias(op, exec, op.inner * op.columns, {exec.columns});
  for (Parameter& parameter : exec.parameters) parameter.gradient = GradientOf::whole;
  alive("pooled", LiveTensor::Cut::none, {1, exec.columns});
  return "";
}

std::string LayerLowering::next_sentence(const Op& op, ExecOp& exec) {
  exec.kind = ExecOpKind::next_sentence;
  if (!alive_.contains("pooled") || !alive_.contains("loss")) return "needs a pooler and a loss";
  program_.next_sentence = true;
  add(exec, "weight", {exec.columns, exec.inner});
  add_bias(op, exec, op.inner * op.columns, {exec.columns});
  for (Parameter& parameter : exec.parameters) parameter.gradient = GradientOf::whole;
  dead("pooled");
  return "";
}

std::string LayerLowering::classifier(const Op& op, ExecOp& exec) {
  exec.kind = ExecOpKind::classifier;
  if (alive_.contains("pooled") && shape_of("pooled")[1] != exec.inner)
    return "does not fit the pooler";
  add(exec, "weight", {exec.columns, exec.inner});
  add_bias(op, exec, op.inner * op.columns, {exec.columns});
  for (Parameter& parameter : exec.parameters) parameter.gradient = GradientOf::whole;
  dead("pooled");
  alive("x", LiveTensor::Cut::none, {1, exec.columns});
  return "";
}

std::string LayerLowering::logits(const Op& op, ExecOp& exec) {
  exec.kind = ExecOpKind::logits;
  Parameter& weight = add(exec, "weight", {exec.columns, exec.inner});
  weight.dim = 0;
  weight.parts = {{exec.columns, 0}};
  // A tied table is the embedding's and not counted here; what is over is the bias, and values
  // that are learnt by name only.
  const double weights = op.inner * op.columns;
  weight.owned = op.parameters >= weights;
  double over = op.parameters - (weight.owned ? weights : 0);
  if (over >= op.columns) {
    add(exec, "bias", {exec.columns});
    exec.parameters.back().dim = 0;
    exec.parameters.back().parts = {{exec.columns, 0}};
    over -= op.columns;
  }
  if (over > 0) add(exec, "unused", {whole(over)}).gradient = GradientOf::whole;
  program_.masked = find("head.dense") != nullptr;
  alive("x", 1, {{exec.columns, 0}}, {exec.positions, exec.columns});
  return "";
}

std::string LayerLowering::loss(const Op& op, ExecOp& exec) {
  exec.kind = ExecOpKind::loss;
  program_.classes = whole(op.columns);
  program_.labels = shape_of("x")[0];
  exec.cut = alive_.at("x").cut == LiveTensor::Cut::features;
  has_loss_ = true;
  const bool pooled = alive_.contains("pooled") && find("head.next_sentence") != nullptr;
  const LiveTensor kept = pooled ? alive_.at("pooled") : LiveTensor{};
  alive_.clear();
  if (pooled) alive_["pooled"] = kept;
  alive("loss", LiveTensor::Cut::none, {1});
  return "";
}

// Kernels and strides are not said by the description; they follow from the number of weights and
// the size of the input.
void LayerLowering::convolution_shape(const Op& op, std::int64_t channels, ExecOp& exec) {
  exec.kernel = whole(std::sqrt(op.inner / static_cast<double>(channels)));
  exec.side = whole(std::sqrt(op.rows));
  const double input = op.moved - op.rows * op.columns;
  const double side = std::sqrt(input / static_cast<double>(channels));
  exec.stride = whole(side / static_cast<double>(exec.side));
  Parameter& weight = add(exec, "weight", {exec.columns, channels, exec.kernel, exec.kernel});
  weight.start = Start::kaiming;
  if (op.split == Split::column) {
    weight.dim = 0;
    weight.parts = {{exec.columns, exec.columns}};
  } else if (op.split == Split::row) {
    weight.dim = 1;
    weight.parts = {{channels, channels}};
  } else {
    weight.gradient = GradientOf::whole;
  }
}

std::string LayerLowering::convolution(const Op& op, ExecOp& exec) {
  exec.kind = ExecOpKind::convolution;
  if (layer_ == "stem") {
    program_.images = true;
    const double input = op.moved - op.rows * op.columns;
    program_.source = whole(std::sqrt(input / 3));
    convolution_shape(op, 3, exec);
    alive("x", LiveTensor::Cut::none, {exec.columns, exec.side, exec.side});
    return "";
  }
  if (!alive_.contains("x")) return "has no input";
  convolution_shape(op, shape_of("x")[0], exec);
  const std::vector<std::int64_t> shape{exec.columns, exec.side, exec.side};
  // The first stays cut for the second, which sums; the third is gathered.
  exec.gathers = op.split == Split::column && op.name != "conv1";
  if (op.name == "conv1")
    alive("x", 0, {{exec.columns, exec.columns}}, shape);
  else
    alive("x", LiveTensor::Cut::none, shape);
  return "";
}

std::string LayerLowering::batch_norm(const Op& op, ExecOp& exec) {
  exec.kind = ExecOpKind::batch_norm;
  add(exec, "weight", {exec.columns}).start = Start::ones;
  add(exec, "bias", {exec.columns});
  for (Parameter& parameter : exec.parameters) {
    parameter.gradient = GradientOf::whole;
    if (op.split != Split::shard) continue;
    parameter.dim = 0;
    parameter.parts = {{exec.columns, exec.columns}};
  }
  return "";
}

std::string LayerLowering::relu(const Op&, ExecOp& exec) {
  exec.kind = ExecOpKind::relu;
  return "";
}

std::string LayerLowering::max_pool(const Op&, ExecOp& exec) {
  exec.kind = ExecOpKind::max_pool;
  for (const int i : {1, 2}) alive_.at("x").shape[i] /= 2;
  return "";
}

std::string LayerLowering::skip(const Op& op, ExecOp& exec) {
  exec.kind = ExecOpKind::skip;
  convolution_shape(op, shape_of("residual")[0], exec);
  exec.gathers = op.split == Split::column;
  alive("residual", LiveTensor::Cut::none, {exec.columns, exec.side, exec.side});
  return "";
}

std::string LayerLowering::skip_norm(const Op& op, ExecOp& exec) {
  std::string fault = batch_norm(op, exec);
  exec.kind = ExecOpKind::skip_norm;
  return fault;
}

std::string LayerLowering::add_relu(const Op&, ExecOp& exec) {
  exec.kind = ExecOpKind::add_relu;
  in_branch_ = false;
  dead("residual");
  return "";
}

std::string LayerLowering::average_pool(const Op&, ExecOp& exec) {
  exec.kind = ExecOpKind::average_pool;
  alive("x", LiveTensor::Cut::none, {1, shape_of("x")[0]});
  return "";
}

std::string LayerLowering::fully_connected(const Op& op, ExecOp& exec) {
  std::string fault = dense(op, exec);
  for (Parameter& parameter : exec.parameters) parameter.gradient = GradientOf::whole;
  alive("x", LiveTensor::Cut::none, {1, exec.columns});
  return fault;
}

}  // namespace plait::runtime
