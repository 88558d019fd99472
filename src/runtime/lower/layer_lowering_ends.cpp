// Mixtures of experts, heads and convolutions.

#include <cmath>
#include <utility>

#include "runtime/lower/layer_lowering.h"

namespace plait::runtime {
namespace {

std::int64_t whole(double count) { return std::llround(count); }

}  // namespace

std::string LayerLowering::router(const Op& op, Step& step) {
  step.kind = StepKind::router;
  add(step, "weight", {step.columns, step.inner});
  add_bias(op, step, op.inner * op.columns, {step.columns});
  if (find("shared.up") != nullptr) {
    step.keeps_input = true;
    alive_["input"] = alive_.at("x");
    alive_["input"].name = "input";
  }
  alive("scores", Alive::Cut::stream, {step.positions, step.columns});
  return "";
}

std::string LayerLowering::top_k(const Op& op, Step& step) {
  step.kind = StepKind::top_k;
  const Op* router_op = find("router");
  if (router_op == nullptr) return "has no router before it";
  step.experts = whole(router_op->columns);
  step.chosen = whole((op.moved - router_op->rows * router_op->columns) / router_op->rows);
  if (step.chosen < 1 || step.chosen > step.experts) return "chooses no experts";
  step.may_cut_after = false;
  dead("scores");
  return "";
}

std::string LayerLowering::experts_up(const Op& op, Step& step) {
  step.kind = StepKind::experts_up;
  step.may_cut_after = false;
  const Op* down = find("experts.down");
  if (down == nullptr) return "has no experts.down after it";
  step.experts = whole(op.count);
  step.gated = down->inner * 2 == op.columns;
  const std::int64_t ffn = whole(down->inner);
  Parameter& weight = add(step, "weight", {step.experts, step.columns, step.inner});
  weight.dim = 1;
  weight.parts = {{ffn, ffn}};
  if (step.gated) weight.parts.push_back({ffn, ffn});
  const std::vector<Part> parts = weight.parts;
  if (op.parameters > op.count * op.inner * op.columns) {
    Parameter& bias = add(step, "bias", {step.experts, step.columns});
    bias.dim = 1;
    bias.parts = parts;
  }
  return "";
}

std::string LayerLowering::experts_activation(const Op&, Step& step) {
  step.kind = StepKind::experts_activation;
  step.may_cut_after = false;
  const Op* up = find("experts.up");
  const Op* down = find("experts.down");
  if (up == nullptr || down == nullptr) return "has no experts around it";
  step.gated = down->inner * 2 == up->columns;
  return "";
}

std::string LayerLowering::experts_down(const Op& op, Step& step) {
  step.kind = StepKind::experts_down;
  step.may_cut_after = false;
  step.experts = whole(op.count);
  Parameter& weight = add(step, "weight", {step.experts, step.columns, step.inner});
  weight.dim = 2;
  weight.parts = {{step.inner, step.inner}};
  if (op.parameters > op.count * op.inner * op.columns)
    add(step, "bias", {step.experts, step.columns}).gradient = GradientOf::part;
  return "";
}

std::string LayerLowering::combine(const Op&, Step& step) {
  step.kind = StepKind::combine;
  return "";
}

std::string LayerLowering::shared_gate(const Op&, Step& step) {
  step.kind = StepKind::shared_gate;
  if (!alive_.contains("input")) return "has no router before it";
  add(step, "weight", {1, step.inner});
  alive("gate", Alive::Cut::stream, {step.positions, 1});
  return "";
}

std::string LayerLowering::shared_add(const Op&, Step& step) {
  step.kind = StepKind::shared_add;
  if (!alive_.contains("routed")) return "has no routed experts to add to";
  dead("routed");
  dead("gate");
  return "";
}

std::string LayerLowering::pooler(const Op& op, Step& step) {
  step.kind = StepKind::pooler;
  add(step, "weight", {step.columns, step.inner}).gradient = GradientOf::whole;
  add_bias(op, step, op.inner * op.columns, {step.columns});
  for (Parameter& parameter : step.parameters) parameter.gradient = GradientOf::whole;
  alive("pooled", Alive::Cut::none, {1, step.columns});
  return "";
}

std::string LayerLowering::next_sentence(const Op& op, Step& step) {
  step.kind = StepKind::next_sentence;
  if (!alive_.contains("pooled") || !alive_.contains("loss")) return "needs a pooler and a loss";
  steps_.next_sentence = true;
  add(step, "weight", {step.columns, step.inner});
  add_bias(op, step, op.inner * op.columns, {step.columns});
  for (Parameter& parameter : step.parameters) parameter.gradient = GradientOf::whole;
  dead("pooled");
  return "";
}

std::string LayerLowering::classifier(const Op& op, Step& step) {
  step.kind = StepKind::classifier;
  if (alive_.contains("pooled") && shape_of("pooled")[1] != step.inner)
    return "does not fit the pooler";
  add(step, "weight", {step.columns, step.inner});
  add_bias(op, step, op.inner * op.columns, {step.columns});
  for (Parameter& parameter : step.parameters) parameter.gradient = GradientOf::whole;
  dead("pooled");
  alive("x", Alive::Cut::none, {1, step.columns});
  return "";
}

std::string LayerLowering::logits(const Op& op, Step& step) {
  step.kind = StepKind::logits;
  Parameter& weight = add(step, "weight", {step.columns, step.inner});
  weight.dim = 0;
  weight.parts = {{step.columns, 0}};
  // A tied table is the embedding's and not counted here; what is over is the bias, and values
  // that are learnt by name only.
  const double weights = op.inner * op.columns;
  weight.owned = op.parameters >= weights;
  double over = op.parameters - (weight.owned ? weights : 0);
  if (over >= op.columns) {
    add(step, "bias", {step.columns});
    step.parameters.back().dim = 0;
    step.parameters.back().parts = {{step.columns, 0}};
    over -= op.columns;
  }
  if (over > 0) add(step, "unused", {whole(over)}).gradient = GradientOf::whole;
  steps_.masked = find("head.dense") != nullptr;
  alive("x", 1, {{step.columns, 0}}, {step.positions, step.columns});
  return "";
}

std::string LayerLowering::loss(const Op& op, Step& step) {
  step.kind = StepKind::loss;
  steps_.classes = whole(op.columns);
  steps_.labels = shape_of("x")[0];
  step.cut = alive_.at("x").cut == Alive::Cut::features;
  has_loss_ = true;
  const bool pooled = alive_.contains("pooled") && find("head.next_sentence") != nullptr;
  const Alive kept = pooled ? alive_.at("pooled") : Alive{};
  alive_.clear();
  if (pooled) alive_["pooled"] = kept;
  alive("loss", Alive::Cut::none, {1});
  return "";
}

// Kernels and strides are not said by the description; they follow from the number of weights and
// the size of the input.
void LayerLowering::convolution_shape(const Op& op, std::int64_t channels, Step& step) {
  step.kernel = whole(std::sqrt(op.inner / static_cast<double>(channels)));
  step.side = whole(std::sqrt(op.rows));
  const double input = op.moved - op.rows * op.columns;
  const double side = std::sqrt(input / static_cast<double>(channels));
  step.stride = whole(side / static_cast<double>(step.side));
  Parameter& weight = add(step, "weight", {step.columns, channels, step.kernel, step.kernel});
  weight.start = Start::kaiming;
  if (op.split == Split::column) {
    weight.dim = 0;
    weight.parts = {{step.columns, step.columns}};
  } else if (op.split == Split::row) {
    weight.dim = 1;
    weight.parts = {{channels, channels}};
  } else {
    weight.gradient = GradientOf::whole;
  }
}

std::string LayerLowering::convolution(const Op& op, Step& step) {
  step.kind = StepKind::convolution;
  if (layer_ == "stem") {
    steps_.images = true;
    const double input = op.moved - op.rows * op.columns;
    steps_.source = whole(std::sqrt(input / 3));
    convolution_shape(op, 3, step);
    alive("x", Alive::Cut::none, {step.columns, step.side, step.side});
    return "";
  }
  if (!alive_.contains("x")) return "has no input";
  convolution_shape(op, shape_of("x")[0], step);
  const std::vector<std::int64_t> shape{step.columns, step.side, step.side};
  // The first stays cut for the second, which sums; the third is gathered.
  step.gathers = op.split == Split::column && op.name != "conv1";
  if (op.name == "conv1")
    alive("x", 0, {{step.columns, step.columns}}, shape);
  else
    alive("x", Alive::Cut::none, shape);
  return "";
}

std::string LayerLowering::batch_norm(const Op& op, Step& step) {
  step.kind = StepKind::batch_norm;
  add(step, "weight", {step.columns}).start = Start::ones;
  add(step, "bias", {step.columns});
  for (Parameter& parameter : step.parameters) {
    parameter.gradient = GradientOf::whole;
    if (op.split != Split::shard) continue;
    parameter.dim = 0;
    parameter.parts = {{step.columns, step.columns}};
  }
  return "";
}

std::string LayerLowering::relu(const Op&, Step& step) {
  step.kind = StepKind::relu;
  return "";
}

std::string LayerLowering::max_pool(const Op&, Step& step) {
  step.kind = StepKind::max_pool;
  for (const int i : {1, 2}) alive_.at("x").shape[i] /= 2;
  return "";
}

std::string LayerLowering::skip(const Op& op, Step& step) {
  step.kind = StepKind::skip;
  convolution_shape(op, shape_of("residual")[0], step);
  step.gathers = op.split == Split::column;
  alive("residual", Alive::Cut::none, {step.columns, step.side, step.side});
  return "";
}

std::string LayerLowering::skip_norm(const Op& op, Step& step) {
  std::string fault = batch_norm(op, step);
  step.kind = StepKind::skip_norm;
  return fault;
}

std::string LayerLowering::add_relu(const Op&, Step& step) {
  step.kind = StepKind::add_relu;
  in_branch_ = false;
  dead("residual");
  return "";
}

std::string LayerLowering::average_pool(const Op&, Step& step) {
  step.kind = StepKind::average_pool;
  alive("x", Alive::Cut::none, {1, shape_of("x")[0]});
  return "";
}

std::string LayerLowering::fully_connected(const Op& op, Step& step) {
  std::string fault = dense(op, step);
  for (Parameter& parameter : step.parameters) parameter.gradient = GradientOf::whole;
  alive("x", Alive::Cut::none, {1, step.columns});
  return fault;
}

}  // namespace plait::runtime
