#include "model/gan.h"

#include <algorithm>
#include <utility>

#include "model/transformer_blocks.h"

namespace plait {
namespace {

constexpr int kInterpolated = 2;  // the first this many up-samplings keep the channels

// Side and channels of each stage.
struct StageShape {
  int side = 0;
  int channels = 0;
  double positions() const { return static_cast<double>(side) * side; }
  double size() const { return positions() * channels; }
  std::string label() const { return std::to_string(side) + "x" + std::to_string(side); }
};

std::vector<StageShape> stages_of(const TransganConfig& config) {
  std::vector<StageShape> out;
  StageShape shape{config.bottom, config.channels};
  for (int stage = 0; stage < static_cast<int>(config.depths.size()); ++stage) {
    if (stage > 0) shape.side *= 2;
    if (stage > kInterpolated) shape.channels /= 4;
    out.push_back(shape);
  }
  return out;
}

void add_positions(OpList& ops, const StageShape& shape) {
  ops.elementwise("positions", Split::replicated, shape.size(), shape.size()).parameters =
      shape.size();
}

LayerKind latent(const TransganConfig& config, const StageShape& shape) {
  OpList ops;
  Op& op = ops.matmul("linear", Split::column, 1, config.latent, shape.size(), true);
  op.forward_reduce = shape.size() / 2;  // gathered: half the traffic of an all-reduce
  add_positions(ops, shape);
  return ops.take("latent");
}

LayerKind upsample(const StageShape& from, const StageShape& to) {
  OpList ops;
  ops.elementwise("resize", Split::replicated, from.size(), to.size());
  add_positions(ops, to);
  return ops.take("upsample_" + to.label());
}

LayerKind block(const TransganConfig& config, const StageShape& shape) {
  TransformerConfig c;
  c.hidden = shape.channels;
  c.heads = config.heads;
  c.qkv_bias = false;
  c.positions = Positions::none;
  c.dropout = false;
  const double window = std::min(config.window, shape.side);
  const BlockShape sizes(c);
  const Stack stack{.positions = shape.positions(), .window = window * window};
  LayerKind kind = transformer_block(sizes, stack, "block_" + shape.label(), false);
  for (Op& op : kind.ops)
    if (op.kind == OpKind::attention) {  // relative positions, which have no fused kernel
      op.parameters = (2 * window - 1) * (2 * window - 1) * config.heads;
      op.writes_scores = op.learnt_bias = true;
    }
  return kind;
}

LayerKind image(const StageShape& shape) {
  OpList ops;
  ops.matmul("to_rgb", Split::replicated, shape.positions(), shape.channels, 3, true).kind =
      OpKind::convolution;
  return ops.take("image");
}

}  // namespace

std::string fault_of(const TransganConfig& config) {
  const int stages = static_cast<int>(config.depths.size());
  if (stages < 1 || stages > 8) return "depths must have from 1 to 8 stages";
  for (const int depth : config.depths)
    if (depth < 0 || depth > 10'000) return "depths must be from 0 to 10000";
  if (config.channels < 1 || config.channels > 1 << 20) return "channels must be from 1 to 1048576";
  if (config.bottom < 1 || config.bottom > 256) return "bottom must be from 1 to 256";
  if (config.latent < 1 || config.latent > 1 << 20) return "latent must be from 1 to 1048576";
  if (config.heads < 1) return "heads must be at least 1";
  if (config.window < 1) return "window must be at least 1";
  for (const StageShape& shape : stages_of(config)) {
    if (shape.channels < 1 || shape.channels % config.heads != 0)
      return "heads (" + std::to_string(config.heads) +
             ") must divide the channels of every stage (" + std::to_string(shape.channels) +
             " at " + shape.label() + ")";
    if (shape.side > config.window && shape.side % config.window != 0)
      return "window (" + std::to_string(config.window) + ") must divide every larger stage (" +
             shape.label() + ")";
  }
  return "";
}

Model build_transgan(const TransganConfig& config) {
  Model model;
  model.name = config.name;
  model.sequence_length = 1;
  const auto add = [&model](LayerKind kind, int times) {
    model.kinds.push_back(std::move(kind));
    model.units.insert(model.units.end(), times, static_cast<int>(model.kinds.size()) - 1);
  };
  const std::vector<StageShape> stages = stages_of(config);
  add(latent(config, stages[0]), 1);
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    if (stage > 0) add(upsample(stages[stage - 1], stages[stage]), 1);
    if (config.depths[stage] > 0) add(block(config, stages[stage]), config.depths[stage]);
  }
  add(image(stages.back()), 1);
  TransganConfig architecture = config;
  architecture.name.clear();
  model.architecture = std::move(architecture);
  return model;
}

}  // namespace plait
