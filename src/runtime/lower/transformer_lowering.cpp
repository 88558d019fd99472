#include "runtime/lower/transformer_lowering.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/transformer.h"

namespace plait::runtime {
namespace {

std::string prefix_of(const std::string& name) { return name.substr(0, name.find('.')); }

std::vector<bool> all_but(int layers, const std::vector<int>& left_out) {
  std::vector<bool> out(layers, true);
  for (const int layer : left_out)
    if (layer < layers) out[layer] = false;
  return out;
}

Function function_of(NormKind kind) {
  return kind == NormKind::layer ? Function::layer_norm : Function::rms_norm;
}

}  // namespace

StackShape::StackShape(const TransformerConfig& c, std::int64_t stack_positions, bool is_causal)
    : positions(stack_positions),
      heads(c.heads),
      kv_heads(c.kv_heads > 0 ? c.kv_heads : c.heads),
      head_dim(c.head_dim > 0 ? c.head_dim : c.hidden / c.heads),
      ffn(c.ffn > 0 ? c.ffn : 4LL * c.hidden),
      causal(is_causal) {}

TransformerLowering::TransformerLowering(const TransformerConfig& config, ExecProgram& program)
    : ProgramWriter(program),
      config_(config),
      decoder_config_(of_decoder(config)),
      encoder_(config, source_positions(config), config.causal && config.decoder_layers == 0),
      decoder_(decoder_config_, target_positions(config), true) {
  const int layers = std::max(config.layers, config.decoder_layers);
  windowed_ = all_but(layers, config.window.full);
  turned_ = all_but(layers, config.rotary.unturned);
}

const std::map<std::string, TransformerLowering::Lower>& TransformerLowering::by_name() {
  using L = TransformerLowering;
  static const std::map<std::string, Lower> table{
      {"embedding.tokens", &L::tokens},
      {"embedding.positions", &L::positions},
      {"embedding.types", &L::types},
      {"embedding.patches", &L::patches},
      {"embedding.class_token", &L::class_token},
      {"embedding.relative_bias", &L::relative_bias},
      {"embedding.projection", &L::embedding_projection},
      {"embedding.dropout", &L::nothing},
      {"embedding.norm", &L::embedding_norm},
      {"encoder.norm", &L::norm},
      {"attention.norm", &L::norm},
      {"attention.norm_out", &L::norm},
      {"attention.qkv", &L::queries_keys_values},
      {"attention.qk_norm", &L::qk_norm},
      {"attention.rotary", &L::rotary},
      {"attention.core", &L::attention},
      {"attention.projection", &L::attention_projection},
      {"attention.residual", &L::residual},
      {"cross.norm", &L::norm},
      {"cross.norm_out", &L::norm},
      {"cross.q", &L::cross_queries},
      {"cross.kv", &L::cross_keys_values},
      {"cross.core", &L::attention},
      {"cross.projection", &L::attention_projection},
      {"cross.residual", &L::residual},
      {"mlp.norm", &L::norm},
      {"mlp.norm_out", &L::norm},
      {"mlp.up", &L::mlp_up},
      {"mlp.activation", &L::mlp_activation},
      {"mlp.down", &L::mlp_down},
      {"mlp.residual", &L::residual},
      {"router", &L::router},
      {"router.top_k", &L::top_k},
      {"experts.up", &L::experts_up},
      {"experts.activation", &L::experts_activation},
      {"experts.down", &L::experts_down},
      {"experts.combine", &L::combine},
      {"shared.gate", &L::shared_gate},
      {"shared.up", &L::mlp_up},
      {"shared.activation", &L::mlp_activation},
      {"shared.down", &L::mlp_down},
      {"shared.add", &L::shared_add},
      {"head.norm", &L::norm},
      {"head.pooler", &L::pooler},
      {"head.dense", &L::head_dense},
      {"head.activation", &L::head_activation},
      {"head.transform_norm", &L::head_norm},
      {"head.projection", &L::head_projection},
      {"head.logits", &L::logits},
      {"head.next_sentence", &L::next_sentence},
      {"head.classifier", &L::classifier},
      {"head.loss", &L::loss},
      {"head.output", &L::nothing},
  };
  return table;
}

void TransformerLowering::begin_layer(const LayerNames&) {
  in_branch_ = false;
  if (layer_has("embedding.tokens") && layer_number() > 0) {
    in_decoder_ = true;
    block_ = -1;
  }
  if (layer_has("attention.core")) ++block_;
}

std::string TransformerLowering::write_op(ExecOp& exec) {
  const auto lower = by_name().find(exec.name);
  if (lower == by_name().end()) return "is not one that can be run";
  begin_branch(exec);
  exec.positions = is_alive("x") ? shape_of("x")[0] : stack().positions;
  return (this->*lower->second)(exec);
}

// A sub-layer keeps the stream to add its result to. It begins with any of its ops, except a norm
// that comes after the adding (BERT).
void TransformerLowering::begin_branch(ExecOp& exec) {
  const std::string prefix = prefix_of(exec.name);
  const bool sublayer =
      prefix == "attention" || prefix == "cross" || prefix == "mlp" || prefix == "router";
  if (in_branch_ || !sublayer) return;
  const bool norm_after = config_.norm_place == NormPlace::after_adding && !config_.parallel;
  if (norm_after && exec.name == prefix + ".norm") return;
  in_branch_ = exec.begins_branch = true;
  copy("x", "residual");
}

std::int64_t TransformerLowering::table_width() const {
  return config_.embedding_width > 0 ? config_.embedding_width : config_.hidden;
}

std::int64_t TransformerLowering::embedded_width() const {
  return config_.narrow_embedding ? table_width() : config_.hidden;
}

void TransformerLowering::set_weight(ExecOp& exec, std::int64_t out, std::int64_t in, bool bias) {
  add(exec, "weight", {out, in});
  if (bias) add_bias(exec, {out});
}

void TransformerLowering::set_norm(ExecOp& exec, std::int64_t width) {
  exec.kind = ExecOpKind::norm;
  exec.function = function_of(config_.norm);
  exec.epsilon = config_.norm_epsilon;
  if (!config_.norm_affine) return;
  add(exec, "weight", {width}).start = Start::ones;
  if (config_.norm == NormKind::layer && config_.norm_shift) add(exec, "bias", {width});
}

void TransformerLowering::set_heads(ExecOp& exec) const {
  exec.heads = stack().heads;
  exec.kv_heads = stack().kv_heads;
  exec.head_dim = stack().head_dim;
}

std::string TransformerLowering::norm(ExecOp& exec) {
  set_norm(exec, config_.hidden);
  if (config_.parallel && exec.name == "mlp.norm") {
    exec.reads_residual = true;
    copy("x", "routed");
    copy("residual", "x");
  }
  return "";
}

std::string TransformerLowering::qk_norm(ExecOp& exec) {
  exec.kind = ExecOpKind::qk_norm;
  exec.function = function_of(config_.qk_norm_kind);
  exec.epsilon = config_.norm_epsilon;
  set_heads(exec);
  if (config_.qk_norm == QkNorm::whole)
    return "normalises all heads together, which is not implemented";
  if (config_.qk_norm == QkNorm::each_head)
    return "has a scale for each head, which is not implemented";
  for (const char* side : {"query", "key"}) {
    const std::string name = side;
    add(exec, name + "_weight", {exec.head_dim}).start = Start::ones;
    exec.parameters.back().gradient = GradientOf::part;
    if (config_.qk_norm_kind == NormKind::rms) continue;
    add(exec, name + "_bias", {exec.head_dim}).start = Start::zeros;
    exec.parameters.back().gradient = GradientOf::part;
  }
  return "";
}

std::string TransformerLowering::queries_keys_values(ExecOp& exec) {
  exec.kind = ExecOpKind::queries_keys_values;
  set_heads(exec);
  const std::int64_t queries = stack().queries();
  const std::int64_t keys = stack().keys();
  Parameter& weight = add(exec, "weight", {queries + 2 * keys, config_.hidden});
  weight.dim = 0;
  weight.parts = {{queries, exec.heads}, {keys, exec.kv_heads}, {keys, exec.kv_heads}};
  if (config_.qkv_bias) add_bias(exec, {queries + 2 * keys});
  if (config_.parallel && config_.shared_norm) {
    exec.keeps_input = true;
    copy("x", "input");
  }
  dead("x");
  alive("q", 1, {{queries, exec.heads}}, {exec.positions, queries});
  alive("k", 1, {{keys, exec.kv_heads}}, {exec.positions, keys});
  alive("v", 1, {{keys, exec.kv_heads}}, {exec.positions, keys});
  return "";
}

std::string TransformerLowering::cross_queries(ExecOp& exec) {
  exec.kind = ExecOpKind::cross_queries;
  if (!is_alive("memory")) return "has no encoder to attend to";
  set_heads(exec);
  const std::int64_t queries = stack().queries();
  Parameter& weight = add(exec, "weight", {queries, config_.hidden});
  weight.dim = 0;
  weight.parts = {{queries, exec.heads}};
  if (config_.qkv_bias) add_bias(exec, {queries});
  dead("x");
  alive("q", 1, {{queries, exec.heads}}, {exec.positions, queries});
  return "";
}

std::string TransformerLowering::cross_keys_values(ExecOp& exec) {
  exec.kind = ExecOpKind::cross_keys_values;
  if (!is_alive("memory")) return "has no encoder to attend to";
  set_heads(exec);
  const std::int64_t keys = stack().keys();
  Parameter& weight = add(exec, "weight", {2 * keys, config_.hidden});
  weight.dim = 0;
  weight.parts = {{keys, exec.kv_heads}, {keys, exec.kv_heads}};
  if (config_.qkv_bias) add_bias(exec, {2 * keys});
  alive("k", 1, {{keys, exec.kv_heads}}, {encoder_.positions, keys});
  alive("v", 1, {{keys, exec.kv_heads}}, {encoder_.positions, keys});
  return "";
}

std::string TransformerLowering::rotary(ExecOp& exec) {
  if (!turned_[block_]) return "";  // ExecOpKind::nothing
  exec.kind = ExecOpKind::rotary;
  set_heads(exec);
  exec.positions = shape_of("q")[0];
  exec.rotary_dim = config_.rotary_dim > 0 ? config_.rotary_dim : exec.head_dim;
  exec.rotary = config_.rotary;
  exec.rotary.unturned.clear();
  if (config_.window.size > 0 && windowed_[block_] && config_.rotary.local_base > 0) {
    exec.rotary.base = config_.rotary.local_base;
    exec.rotary.scaling = RotaryScaling::none;
  }
  if (exec.rotary_dim < 2 || exec.rotary_dim % 2 != 0 || exec.rotary_dim > exec.head_dim)
    return "turns " + std::to_string(exec.rotary_dim) + " features of a head, which must be even";
  return "";
}

std::string TransformerLowering::attention(ExecOp& exec) {
  exec.kind = ExecOpKind::attention;
  exec.selective = true;
  if (config_.attention_sinks) return "has attention sinks, which are not implemented";
  set_heads(exec);
  exec.positions = shape_of("q")[0];
  const bool self = exec.name == "attention.core";
  const bool relative = config_.positions == Positions::relative;
  if (relative && config_.relative_everywhere)
    return "has a table of relative positions of its own, which is not implemented";
  exec.causal = self && stack().causal;
  exec.scale = config_.attention_scale > 0 ? config_.attention_scale
               : relative                  ? 1
                                           : 1 / std::sqrt(static_cast<double>(exec.head_dim));
  exec.cap = config_.score_cap;
  if (self) {
    exec.alibi = config_.positions == Positions::alibi;
    if (windowed_[block_] && config_.window.size < exec.positions)
      exec.window = config_.window.size;
    exec.parameters = relative_;
    exec.relative_distance = relative ? config_.relative_distance : 0;
  }
  if ((exec.alibi || exec.window > 0) && !exec.causal)
    return "attends in both directions with ALiBi or within a window, which is not implemented";
  for (const char* name : {"q", "k", "v"}) dead(name);
  alive("x", 1, {{stack().queries(), exec.heads}}, {exec.positions, stack().queries()});
  return "";
}

std::string TransformerLowering::attention_projection(ExecOp& exec) {
  exec.kind = ExecOpKind::row;
  const std::int64_t queries = stack().queries();
  Parameter& weight = add(exec, "weight", {config_.hidden, queries});
  weight.dim = 1;
  weight.parts = {{queries, stack().heads}};
  if (config_.projection_bias) add_bias(exec, {config_.hidden});
  alive("x", LiveTensor::Cut::stream, {exec.positions, config_.hidden});
  return "";
}

std::string TransformerLowering::mlp_up(ExecOp& exec) {
  exec.kind = ExecOpKind::column;
  exec.gated = config_.gated;
  const bool shared = exec.name == "shared.up";
  const std::int64_t ffn = shared ? config_.moe.shared_ffn : stack().ffn;
  const std::int64_t out = exec.gated ? 2 * ffn : ffn;
  Parameter& weight = add(exec, "weight", {out, config_.hidden});
  weight.dim = 0;
  weight.parts = {{ffn, ffn}};
  if (exec.gated) weight.parts.push_back({ffn, ffn});
  const std::vector<Part> parts = weight.parts;
  if (config_.mlp_bias) add_bias(exec, {out});
  if (is_alive("input")) {  // shared experts, or the second branch of a parallel block
    exec.reads_input = true;
    copy("x", "routed");
    dead("input");
  }
  alive("x", 1, parts, {exec.positions, out});
  return "";
}

std::string TransformerLowering::mlp_activation(ExecOp& exec) {
  exec.kind = ExecOpKind::activation;
  exec.function = config_.activation;
  exec.gated = config_.gated;
  LiveTensor& x = alive_.at("x");
  if (!exec.gated) return "";
  x.parts.pop_back();
  x.shape[1] = x.parts[0].size;
  return "";
}

std::string TransformerLowering::mlp_down(ExecOp& exec) {
  exec.kind = ExecOpKind::row;
  const bool shared = exec.name == "shared.down";
  const std::int64_t ffn = shared ? config_.moe.shared_ffn : stack().ffn;
  Parameter& weight = add(exec, "weight", {config_.hidden, ffn});
  weight.dim = 1;
  weight.parts = {{ffn, ffn}};
  if (config_.mlp_bias) add_bias(exec, {config_.hidden});
  alive("x", LiveTensor::Cut::stream, {exec.positions, config_.hidden});
  return "";
}

std::string TransformerLowering::residual(ExecOp& exec) {
  exec.kind = ExecOpKind::residual;
  exec.scale = config_.residual_scale;
  in_branch_ = false;
  dead("residual");
  dead("routed");
  return "";
}

}  // namespace plait::runtime
