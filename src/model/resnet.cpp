#include "model/resnet.h"

#include <utility>

#include "model/op_list.h"

namespace plait {
namespace {

constexpr int kExpansion = 4;  // a block's output is this many times its stage's channels

// A square feature map.
struct Map {
  double side = 0;
  double channels = 0;
  double positions() const { return side * side; }
  double size() const { return positions() * channels; }
  friend bool operator==(const Map&, const Map&) = default;
};

Op& batch_norm(OpList& ops, std::string name, Split split, const Map& map) {
  return ops.norm(std::move(name), split, map.positions(), map.channels, 2 * map.channels);
}

// In place: what it needs for backward is its output, which the next convolution saves.
void relu(OpList& ops, std::string name, Split split, const Map& map) {
  ops.elementwise(std::move(name), split, map.size(), map.size());
}

void gather_output(Op& op) { op.forward_reduce = op.rows * op.columns / 2; }

LayerKind stem(double image, const Map& after_pooling) {
  const Map input{image, 3};
  const Map map{image / 2, after_pooling.channels};
  OpList ops;
  ops.convolution("conv1", Split::replicated, input.size(), map.positions(), 7 * 7 * 3,
                  map.channels);
  batch_norm(ops, "bn1", Split::replicated, map);
  relu(ops, "relu1", Split::replicated, map);
  ops.elementwise("maxpool", Split::replicated, map.size(), after_pooling.size()).saved =
      map.size();
  return ops.take("stem");
}

// 1x1 to `inner` channels, 3x3 to `width` times as many, 1x1 to the output's.
LayerKind bottleneck(std::string name, const Map& input, double inner, double width,
                     const Map& output) {
  const Map before{input.side, inner};
  const Map wide{output.side, inner * width};
  const bool resized = input != output;
  OpList ops;
  ops.held = input.size();
  ops.convolution("conv1", Split::column, input.size(), before.positions(), input.channels, inner)
      .backward_reduce = input.size();
  batch_norm(ops, "bn1", Split::shard, before);
  relu(ops, "relu1", Split::shard, before);
  ops.convolution("conv2", Split::row, before.size(), wide.positions(), 9 * inner, wide.channels);
  batch_norm(ops, "bn2", Split::replicated, wide);
  relu(ops, "relu2", Split::replicated, wide);
  Op& last = ops.convolution("conv3", Split::column, wide.size(), wide.positions(), wide.channels,
                             output.channels);
  last.backward_reduce = wide.size();
  gather_output(last);
  batch_norm(ops, "bn3", Split::replicated, output);
  if (resized) {
    ops.held = output.size();
    Op& skip = ops.convolution("downsample", Split::column, input.size(), output.positions(),
                               input.channels, output.channels);
    skip.saved = 0;  // the input that conv1 saves
    skip.backward_reduce = input.size();
    gather_output(skip);
    batch_norm(ops, "downsample_bn", Split::replicated, output);
  }
  ops.held = 0;
  ops.elementwise("add_relu", Split::replicated, 2 * output.size(), output.size());
  return ops.take(std::move(name));
}

LayerKind head(const Map& input, double classes) {
  OpList ops;
  // Saved: the last block's output, which no later convolution keeps for its ReLU.
  ops.elementwise("avgpool", Split::replicated, input.size(), input.channels).saved = input.size();
  ops.matmul("fc", Split::replicated, 1, input.channels, classes, true);
  ops.loss("loss", Split::replicated, 1, classes);
  return ops.take("head");
}

}  // namespace

std::string fault_of(const WideResnetConfig& config) {
  const int stages = static_cast<int>(config.blocks.size());
  if (stages < 1 || stages > 8) return "there must be from 1 to 8 stages";
  for (const int blocks : config.blocks)
    if (blocks < 1 || blocks > 10'000) return "every stage must have from 1 to 10000 blocks";
  if (config.channels < 1 || config.channels > 1 << 16) return "channels must be from 1 to 65536";
  if (config.width < 1 || config.width > 1 << 10) return "width must be from 1 to 1024";
  if (config.classes < 1 || config.classes > 1 << 24) return "classes must be from 1 to 16777216";
  if (config.image < 1 || config.image > 1 << 14 || config.image % (2 << stages) != 0)
    return "image must be a multiple of " + std::to_string(2 << stages) + " and at most 16384";
  return "";
}

Model build_wide_resnet(const WideResnetConfig& config) {
  Model model;
  model.name = config.name;
  model.sequence_length = 1;
  const auto add = [&model](LayerKind kind, int times) {
    model.kinds.push_back(std::move(kind));
    model.units.insert(model.units.end(), times, static_cast<int>(model.kinds.size()) - 1);
  };
  Map map{config.image / 4.0, static_cast<double>(config.channels)};
  add(stem(config.image, map), 1);
  for (int stage = 0; stage < static_cast<int>(config.blocks.size()); ++stage) {
    const double channels = static_cast<double>(config.channels) * (1 << stage);
    const Map output{stage == 0 ? map.side : map.side / 2, kExpansion * channels};
    const std::string name = "stage" + std::to_string(stage + 1);
    add(bottleneck(name + "_first", map, channels, config.width, output), 1);
    if (config.blocks[stage] > 1)
      add(bottleneck(name, output, channels, config.width, output), config.blocks[stage] - 1);
    map = output;
  }
  add(head(map, config.classes), 1);
  WideResnetConfig architecture = config;
  architecture.name.clear();
  model.architecture = std::move(architecture);
  return model;
}

}  // namespace plait
