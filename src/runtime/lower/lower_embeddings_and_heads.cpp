// What stands before the first block of a stack and after the last.

#include "runtime/lower/transformer_lowering.h"

namespace plait::runtime {

std::string TransformerLowering::tokens(ExecOp& exec) {
  exec.kind = ExecOpKind::tokens;
  exec.scale = config_.embedding_scale;
  exec.positions = stack().positions;
  if (in_decoder_) {
    exec.keeps_memory = true;
    copy("x", "memory");
    program_.target = exec.positions;
    relative_.clear();
  } else {
    program_.source = exec.positions;
    program_.vocabulary = config_.vocabulary;
  }
  Parameter& table = add(exec, "weight", {config_.vocabulary, table_width()});
  table.dim = 0;
  table.parts = {{config_.vocabulary, 0}};
  alive("x", LiveTensor::Cut::stream, {exec.positions, table_width()});
  return "";
}

std::string TransformerLowering::positions(ExecOp& exec) {
  exec.kind = ExecOpKind::positions;
  if (config_.positions == Positions::sinusoidal)
    return "is a fixed table, which is not implemented";
  const std::int64_t rows = config_.position_rows > 0 ? config_.position_rows : exec.positions;
  exec.first_row = config_.position_offset;
  if (rows < exec.positions + exec.first_row) return "has fewer rows than positions";
  add(exec, "weight", {rows, shape_of("x")[1]});
  return "";
}

std::string TransformerLowering::types(ExecOp& exec) {
  exec.kind = ExecOpKind::types;
  program_.type_rows = config_.type_vocabulary;
  add(exec, "weight", {program_.type_rows, embedded_width()});
  return "";
}

std::string TransformerLowering::patches(ExecOp& exec) {
  constexpr int kChannels = 3;  // of the images that are trained on
  exec.kind = ExecOpKind::patches;
  program_.images = true;
  const Patches& patches = config_.patches;
  if (patches.channels != kChannels)
    return "reads images of " + std::to_string(patches.channels) +
           " channels, where 3 are implemented";
  exec.kernel = exec.stride = patches.patch;
  exec.side = patches.image / patches.patch;
  if (exec.side * patches.patch != patches.image)
    return "does not cut the image into whole patches";
  program_.source = patches.image;
  add(exec, "weight", {config_.hidden, kChannels, patches.patch, patches.patch}).start =
      Start::kaiming;
  add_bias(exec, {config_.hidden});
  alive("x", LiveTensor::Cut::stream, {exec.side * exec.side, config_.hidden});
  return "";
}

std::string TransformerLowering::class_token(ExecOp& exec) {
  exec.kind = ExecOpKind::class_token;
  const std::int64_t tokens = config_.patches.tokens;  // DeiT has two
  add(exec, "weight", {tokens * config_.hidden});
  alive("x", LiveTensor::Cut::stream, {stack().positions, config_.hidden});
  return "";
}

std::string TransformerLowering::relative_bias(ExecOp& exec) {
  exec.kind = ExecOpKind::relative_bias;
  // Kept [heads, buckets], so that heads are cut along dimension 0. A decoder reads a table of the
  // encoder's heads, as it is counted.
  const std::int64_t heads = encoder_.heads;
  if (heads != stack().heads) return "has another number of heads than the decoder";
  Parameter& table = add(exec, "weight", {heads, config_.relative_buckets});
  table.dim = 0;
  table.parts = {{heads, heads}};
  relative_ = {table};
  relative_[0].owned = false;
  return "";
}

std::string TransformerLowering::embedding_projection(ExecOp& exec) {
  exec.kind = ExecOpKind::dense;
  set_weight(exec, config_.hidden, table_width(), config_.narrow_embedding);
  alive("x", LiveTensor::Cut::stream, {exec.positions, config_.hidden});
  return "";
}

std::string TransformerLowering::embedding_norm(ExecOp& exec) {
  set_norm(exec, shape_of("x")[1]);
  return "";
}

std::string TransformerLowering::nothing(ExecOp&) { return ""; }

std::string TransformerLowering::pooler(ExecOp& exec) {
  exec.kind = ExecOpKind::pooler;
  set_weight(exec, config_.pooler, config_.hidden, true);
  for (Parameter& parameter : exec.parameters) parameter.gradient = GradientOf::whole;
  alive("pooled", LiveTensor::Cut::none, {1, config_.pooler});
  return "";
}

std::string TransformerLowering::head_dense(ExecOp& exec) {
  exec.kind = ExecOpKind::dense;
  set_weight(exec, embedded_width(), config_.hidden, true);
  alive("x", LiveTensor::Cut::stream, {exec.positions, embedded_width()});
  return "";
}

std::string TransformerLowering::head_activation(ExecOp& exec) {
  exec.kind = ExecOpKind::activation;
  exec.function = config_.activation;
  return "";
}

std::string TransformerLowering::head_norm(ExecOp& exec) {
  set_norm(exec, embedded_width());
  return "";
}

std::string TransformerLowering::head_projection(ExecOp& exec) {
  exec.kind = ExecOpKind::dense;
  set_weight(exec, table_width(), config_.hidden, false);
  alive("x", LiveTensor::Cut::stream, {exec.positions, table_width()});
  return "";
}

std::string TransformerLowering::next_sentence(ExecOp& exec) {
  exec.kind = ExecOpKind::next_sentence;
  if (!is_alive("pooled") || config_.pooler != config_.hidden)
    return "needs a pooler as wide as the blocks";
  program_.next_sentence = true;
  set_weight(exec, 2, config_.hidden, true);
  for (Parameter& parameter : exec.parameters) parameter.gradient = GradientOf::whole;
  dead("pooled");
  return "";
}

std::string TransformerLowering::classifier(ExecOp& exec) {
  exec.kind = ExecOpKind::classifier;
  if (is_alive("pooled") && config_.pooler != config_.hidden) return "does not fit the pooler";
  set_weight(exec, config_.classes, config_.hidden, config_.classifier_bias);
  for (Parameter& parameter : exec.parameters) parameter.gradient = GradientOf::whole;
  dead("pooled");
  alive("x", LiveTensor::Cut::none, {1, config_.classes});
  return "";
}

std::string TransformerLowering::logits(ExecOp& exec) {
  exec.kind = ExecOpKind::logits;
  exec.scale = config_.logit_scale;
  exec.cap = config_.logit_cap;
  const std::int64_t classes = config_.vocabulary;
  Parameter& weight = add(exec, "weight", {classes, table_width()});
  weight.dim = 0;
  weight.parts = {{classes, 0}};
  weight.owned = !config_.tied;
  if (config_.head_bias) add_bias(exec, {classes});
  if (config_.unused_parameters > 0)
    add(exec, "unused", {config_.unused_parameters}).gradient = GradientOf::whole;
  program_.masked = config_.head == Head::masked || config_.head == Head::pretraining;
  alive("x", 1, {{classes, 0}}, {exec.positions, classes});
  return "";
}

std::string TransformerLowering::loss(ExecOp& exec) {
  end_in_loss(exec, config_.head == Head::classifier ? config_.classes : config_.vocabulary);
  return "";
}

}  // namespace plait::runtime
