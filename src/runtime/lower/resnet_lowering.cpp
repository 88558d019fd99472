#include "runtime/lower/resnet_lowering.h"

namespace plait::runtime {
namespace {

constexpr std::int64_t kImageChannels = 3;
constexpr std::int64_t kExpansion = 4;  // a block's output is this many times its stage's channels

}  // namespace

ResnetLowering::ResnetLowering(const WideResnetConfig& config, ExecProgram& program)
    : ProgramWriter(program), config_(config) {}

void ResnetLowering::begin_layer(const LayerNames&) {
  if (layer_number() == 0 || !layer_has("conv1")) return;  // the stem, the head
  if (stage_ < 0 || ++block_ == config_.blocks[stage_]) {
    ++stage_;
    block_ = 0;
  }
  inner_ = static_cast<std::int64_t>(config_.channels) << stage_;
  wide_ = inner_ * config_.width;
  output_ = inner_ * kExpansion;
  stride_ = stage_ > 0 && block_ == 0 ? 2 : 1;
}

std::string ResnetLowering::write_op(ExecOp& exec) {
  const std::string& name = exec.name;
  if (layer_number() == 0 && name == "conv1") {
    stem(exec);
  } else if (name == "conv1" || name == "conv2" || name == "conv3") {
    convolution(exec);
  } else if (name == "bn1") {
    batch_norm(exec, shape_of("x")[0], layer_number() > 0);
  } else if (name == "bn2" || name == "bn3") {
    batch_norm(exec, shape_of("x")[0], false);
  } else if (name == "relu1" || name == "relu2") {
    exec.kind = ExecOpKind::relu;
  } else if (name == "maxpool") {
    exec.kind = ExecOpKind::max_pool;
    for (const int i : {1, 2}) alive_.at("x").shape[i] /= 2;
  } else if (name == "downsample") {
    skip(exec);
  } else if (name == "downsample_bn") {
    batch_norm(exec, output_, false);
    exec.kind = ExecOpKind::skip_norm;
  } else if (name == "add_relu") {
    exec.kind = ExecOpKind::add_relu;
    dead("residual");
  } else if (name == "avgpool") {
    exec.kind = ExecOpKind::average_pool;
    alive("x", LiveTensor::Cut::none, {1, shape_of("x")[0]});
  } else if (name == "fc") {
    fully_connected(exec);
  } else if (name == "loss") {
    end_in_loss(exec, config_.classes);
  } else {
    return "is not one that can be run";
  }
  return "";
}

void ResnetLowering::set_convolution(ExecOp& exec, const Convolution& shape, std::int64_t side) {
  exec.kernel = shape.kernel;
  exec.stride = shape.stride;
  exec.side = side / shape.stride;
  Parameter& weight = add(exec, "weight", {shape.out, shape.in, shape.kernel, shape.kernel});
  weight.start = Start::kaiming;
  weight.dim = shape.cut;
  if (shape.cut < 0) weight.gradient = GradientOf::whole;
  const std::int64_t pieces = shape.cut == 0 ? shape.out : shape.in;
  if (shape.cut >= 0) weight.parts = {{pieces, pieces}};
}

void ResnetLowering::stem(ExecOp& exec) {
  exec.kind = ExecOpKind::convolution;
  program_.images = true;
  program_.source = config_.image;
  set_convolution(exec, {.in = kImageChannels, .out = config_.channels, .kernel = 7, .stride = 2},
                  config_.image);
  alive("x", LiveTensor::Cut::none, {config_.channels, exec.side, exec.side});
}

void ResnetLowering::convolution(ExecOp& exec) {
  exec.kind = ExecOpKind::convolution;
  const std::int64_t in = shape_of("x")[0];
  const std::int64_t side = shape_of("x")[1];
  if (exec.name == "conv1") {
    exec.begins_branch = true;
    copy("x", "residual");
    set_convolution(exec, {.in = in, .out = inner_, .cut = 0}, side);
    alive("x", 0, {{inner_, inner_}}, {inner_, side, side});
  } else if (exec.name == "conv2") {
    set_convolution(exec, {.in = in, .out = wide_, .kernel = 3, .stride = stride_, .cut = 1}, side);
    alive("x", LiveTensor::Cut::none, {wide_, exec.side, exec.side});
  } else {
    set_convolution(exec, {.in = in, .out = output_, .cut = 0}, side);
    exec.gathers = true;
    alive("x", LiveTensor::Cut::none, {output_, side, side});
  }
}

void ResnetLowering::skip(ExecOp& exec) {
  exec.kind = ExecOpKind::skip;
  const std::int64_t in = shape_of("residual")[0];
  set_convolution(exec, {.in = in, .out = output_, .stride = stride_, .cut = 0},
                  shape_of("residual")[1]);
  exec.gathers = true;
  alive("residual", LiveTensor::Cut::none, {output_, exec.side, exec.side});
}

void ResnetLowering::batch_norm(ExecOp& exec, std::int64_t channels, bool cut) {
  exec.kind = ExecOpKind::batch_norm;
  add(exec, "weight", {channels}).start = Start::ones;
  add(exec, "bias", {channels});
  for (Parameter& parameter : exec.parameters) {
    parameter.gradient = GradientOf::whole;
    if (!cut) continue;
    parameter.dim = 0;
    parameter.parts = {{channels, channels}};
  }
}

void ResnetLowering::fully_connected(ExecOp& exec) {
  exec.kind = ExecOpKind::dense;
  add(exec, "weight", {config_.classes, shape_of("x")[1]});
  add_bias(exec, {config_.classes});
  for (Parameter& parameter : exec.parameters) parameter.gradient = GradientOf::whole;
  alive("x", LiveTensor::Cut::none, {1, config_.classes});
}

}  // namespace plait::runtime
