#include "runtime/lower/layer_lowering.h"

#include <cmath>
#include <utility>

namespace plait::runtime {
namespace {

std::int64_t whole(double count) { return std::llround(count); }

std::string prefix_of(const std::string& name) { return name.substr(0, name.find('.')); }

}  // namespace

const std::map<std::string, LayerLowering::Lower>& LayerLowering::by_name() {
  using L = LayerLowering;
  static const std::map<std::string, Lower> table{
      {"embedding.tokens", &L::tokens},
      {"embedding.positions", &L::positions},
      {"embedding.types", &L::types},
      {"embedding.patches", &L::patches},
      {"embedding.class_token", &L::class_token},
      {"embedding.relative_bias", &L::relative_bias},
      {"embedding.projection", &L::dense},
      {"embedding.dropout", &L::nothing},
      {"embedding.norm", &L::norm},
      {"encoder.norm", &L::norm},
      {"attention.norm", &L::norm},
      {"attention.norm_out", &L::norm},
      {"attention.qkv", &L::queries_keys_values},
      {"attention.qk_norm", &L::qk_norm},
      {"attention.rotary", &L::rotary},
      {"attention.core", &L::attention},
      {"attention.projection", &L::row},
      {"attention.residual", &L::residual},
      {"cross.norm", &L::norm},
      {"cross.norm_out", &L::norm},
      {"cross.q", &L::cross_queries},
      {"cross.kv", &L::cross_keys_values},
      {"cross.core", &L::attention},
      {"cross.projection", &L::row},
      {"cross.residual", &L::residual},
      {"mlp.norm", &L::norm},
      {"mlp.norm_out", &L::norm},
      {"mlp.up", &L::column},
      {"mlp.activation", &L::activation},
      {"mlp.down", &L::row},
      {"mlp.residual", &L::residual},
      {"router", &L::router},
      {"router.top_k", &L::top_k},
      {"experts.up", &L::experts_up},
      {"experts.activation", &L::experts_activation},
      {"experts.down", &L::experts_down},
      {"experts.combine", &L::combine},
      {"shared.gate", &L::shared_gate},
      {"shared.up", &L::column},
      {"shared.activation", &L::activation},
      {"shared.down", &L::row},
      {"shared.add", &L::shared_add},
      {"head.norm", &L::norm},
      {"head.pooler", &L::pooler},
      {"head.dense", &L::dense},
      {"head.activation", &L::activation},
      {"head.transform_norm", &L::norm},
      {"head.projection", &L::dense},
      {"head.logits", &L::logits},
      {"head.next_sentence", &L::next_sentence},
      {"head.classifier", &L::classifier},
      {"head.loss", &L::loss},
      {"conv1", &L::convolution},
      {"conv2", &L::convolution},
      {"conv3", &L::convolution},
      {"bn1", &L::batch_norm},
      {"bn2", &L::batch_norm},
      {"bn3", &L::batch_norm},
      {"relu1", &L::relu},
      {"relu2", &L::relu},
      {"maxpool", &L::max_pool},
      {"downsample", &L::skip},
      {"downsample_bn", &L::skip_norm},
      {"add_relu", &L::add_relu},
      {"avgpool", &L::average_pool},
      {"fc", &L::fully_connected},
      {"loss", &L::loss},
  };
  return table;
}

std::string LayerLowering::layer(int number, const std::string& name,
                                 const std::vector<const Op*>& ops) {
  number_ = number;
  layer_ = name;
  ops_ = ops;
  previous_ = nullptr;
  in_branch_ = false;
  for (const Op* op : ops) {
    ExecOp exec;
    exec.name = op->name;
    exec.function = op->function;
    const std::string fault = one(*op, exec);
    if (!fault.empty()) return "op '" + op->name + "' " + fault;
    for (const auto& [key, tensor] : alive_) exec.alive.push_back(tensor);
    program_.ops.push_back(std::move(exec));
    previous_ = op;
  }
  return "";
}

std::string LayerLowering::one(const Op& op, ExecOp& exec) {
  const auto lower = by_name().find(op.name);
  if (lower == by_name().end()) return "is not one that can be run";
  if (number_ > 0 && alive_.empty()) return "follows the loss";
  begin_branch(op, exec);
  exec.positions = alive_.contains("x") ? shape_of("x")[0] : whole(op.rows);
  exec.inner = whole(op.inner);
  exec.columns = whole(op.columns);
  return (this->*lower->second)(op, exec);
}

// A sub-layer keeps the stream to add its result to. It begins with any of its ops, except a norm
// that comes after the adding (BERT).
void LayerLowering::begin_branch(const Op& op, ExecOp& exec) {
  const std::string prefix = prefix_of(op.name);
  const bool sublayer = prefix == "attention" || prefix == "cross" || prefix == "mlp" ||
                        prefix == "router" || op.name == "conv1";
  if (in_branch_ || !sublayer || layer_ == "stem") return;
  if (op.name == prefix + ".norm" && previous_ != nullptr &&
      previous_->name == prefix + ".residual")
    return;
  in_branch_ = exec.begins_branch = true;
  alive_["residual"] = alive_.at("x");
  alive_["residual"].name = "residual";
}

const Op* LayerLowering::find(const std::string& name) const {
  for (const Op* op : ops_)
    if (op->name == name) return op;
  return nullptr;
}

Parameter& LayerLowering::add(ExecOp& exec, const std::string& what,
                              std::vector<std::int64_t> shape) {
  Parameter parameter;
  parameter.name = std::to_string(number_) + "." + exec.name + "." + what;
  parameter.shape = std::move(shape);
  if (what == "bias") parameter.start = Start::zeros;
  exec.parameters.push_back(std::move(parameter));
  return exec.parameters.back();
}

void LayerLowering::add_bias(const Op& op, ExecOp& exec, double weights,
                             std::vector<std::int64_t> shape) {
  if (op.parameters <= weights) return;
  const Parameter& weight = exec.parameters.front();
  const int dim = weight.dim;
  const std::vector<Part> parts = weight.parts;
  Parameter& bias = add(exec, "bias", std::move(shape));
  if (dim != 0) return;
  bias.dim = 0;
  bias.parts = parts;
}

void LayerLowering::alive(const std::string& name, LiveTensor::Cut cut,
                          std::vector<std::int64_t> shape) {
  alive_[name] = {.name = name, .shape = std::move(shape), .cut = cut};
}

void LayerLowering::alive(const std::string& name, int dim, std::vector<Part> parts,
                          std::vector<std::int64_t> shape) {
  alive_[name] = {.name = name,
                  .shape = std::move(shape),
                  .cut = LiveTensor::Cut::features,
                  .dim = dim,
                  .parts = std::move(parts)};
}

const std::vector<std::int64_t>& LayerLowering::shape_of(const std::string& name) const {
  return alive_.at(name).shape;
}

std::string LayerLowering::tokens(const Op& op, ExecOp& exec) {
  exec.kind = ExecOpKind::tokens;
  const std::int64_t rows = whole(op.rows);
  if (alive_.contains("x")) {
    exec.keeps_memory = true;
    alive_["memory"] = alive_.at("x");
    alive_["memory"].name = "memory";
    program_.target = rows;
  } else {
    program_.source = rows;
    program_.vocabulary = whole(op.parameters / op.columns);
  }
  exec.positions = rows;
  Parameter& table = add(exec, "weight", {program_.vocabulary, exec.columns});
  table.dim = 0;
  table.parts = {{program_.vocabulary, 0}};
  hidden_ = exec.columns;
  alive("x", LiveTensor::Cut::stream, {rows, exec.columns});
  return "";
}

std::string LayerLowering::positions(const Op& op, ExecOp& exec) {
  exec.kind = ExecOpKind::positions;
  add(exec, "weight", {whole(op.parameters / op.columns), exec.columns});
  if (exec.parameters[0].shape[0] < exec.positions) return "has fewer rows than positions";
  return "";
}

std::string LayerLowering::types(const Op& op, ExecOp& exec) {
  exec.kind = ExecOpKind::types;
  program_.type_rows = whole(op.parameters / op.columns);
  add(exec, "weight", {program_.type_rows, exec.columns});
  return "";
}

std::string LayerLowering::patches(const Op& op, ExecOp& exec) {
  exec.kind = ExecOpKind::patches;
  program_.images = true;
  const std::int64_t side = whole(std::sqrt(op.rows));
  const std::int64_t channels = 3;
  exec.kernel = exec.stride = whole(std::sqrt(op.inner / 3));
  if (side * side != whole(op.rows) || exec.kernel * exec.kernel * channels != exec.inner)
    return "is no square of square patches of 3 channels";
  exec.side = side;
  program_.source = side * exec.kernel;
  add(exec, "weight", {exec.columns, channels, exec.kernel, exec.kernel}).start = Start::kaiming;
  add_bias(op, exec, op.inner * op.columns, {exec.columns});
  alive("x", LiveTensor::Cut::stream, {whole(op.rows), exec.columns});
  return "";
}

std::string LayerLowering::class_token(const Op& op, ExecOp& exec) {
  exec.kind = ExecOpKind::class_token;
  const std::vector<std::int64_t> shape = shape_of("x");
  const std::int64_t tokens = whole(op.parameters) / shape[1];  // DeiT has two
  add(exec, "weight", {tokens * shape[1]});
  alive("x", LiveTensor::Cut::stream, {shape[0] + tokens, shape[1]});
  return "";
}

std::string LayerLowering::relative_bias(const Op& op, ExecOp& exec) {
  exec.kind = ExecOpKind::relative_bias;
  // Heads are known to the blocks: kept [heads, buckets], so that they are cut along dimension 0.
  const std::int64_t buckets = 32;
  const std::int64_t heads = whole(op.parameters / buckets);
  if (heads * buckets != whole(op.parameters)) return "has another number of buckets than 32";
  Parameter& table = add(exec, "weight", {heads, buckets});
  table.dim = 0;
  table.parts = {{heads, heads}};
  relative_ = {table};
  relative_[0].owned = false;
  return "";
}

std::string LayerLowering::nothing(const Op&, ExecOp&) { return ""; }

std::string LayerLowering::norm(const Op& op, ExecOp& exec) {
  exec.kind = ExecOpKind::norm;
  if (op.name == "mlp.norm" && previous_ != nullptr && previous_->name == "attention.projection") {
    exec.reads_residual = true;  // a parallel block
    alive_["routed"] = alive_.at("x");
    alive_["routed"].name = "routed";
    alive_["x"] = alive_.at("residual");
    alive_["x"].name = "x";
  }
  if (op.parameters == 0) return "";
  add(exec, "weight", {exec.columns}).start = Start::ones;
  add_bias(op, exec, op.columns, {exec.columns});
  return "";
}

std::string LayerLowering::qk_norm(const Op& op, ExecOp& exec) {
  exec.kind = ExecOpKind::qk_norm;
  const Op* core = find("attention.core");
  if (core == nullptr) return "has no attention.core after it";
  exec.heads = whole(core->count);
  exec.kv_heads = whole(core->kv_count);
  exec.head_dim = whole(core->inner);
  const std::int64_t per_feature = op.function == Function::layer_norm ? 2 : 1;
  if (whole(op.parameters) != per_feature * 2 * exec.head_dim)
    return "normalises all heads together, which is not implemented";
  for (const char* side : {"query", "key"}) {
    const std::string name = side;
    add(exec, name + "_weight", {exec.head_dim}).start = Start::ones;
    exec.parameters.back().gradient = GradientOf::part;
    if (per_feature == 1) continue;
    add(exec, name + "_bias", {exec.head_dim}).start = Start::zeros;
    exec.parameters.back().gradient = GradientOf::part;
  }
  return "";
}

std::string LayerLowering::dense(const Op& op, ExecOp& exec) {
  exec.kind = ExecOpKind::dense;
  add(exec, "weight", {exec.columns, exec.inner});
  add_bias(op, exec, op.inner * op.columns, {exec.columns});
  alive("x", LiveTensor::Cut::stream, {exec.positions, exec.columns});
  return "";
}

std::string LayerLowering::column(const Op& op, ExecOp& exec) {
  exec.kind = ExecOpKind::column;
  const std::string prefix = prefix_of(op.name);
  const Op* down = find(prefix + ".down");
  if (down == nullptr) return "has no matrix down after it";
  exec.gated = down->inner * 2 == op.columns;
  const std::int64_t ffn = whole(down->inner);
  Parameter& weight = add(exec, "weight", {exec.columns, exec.inner});
  weight.dim = 0;
  weight.parts = {{ffn, ffn}};
  if (exec.gated) weight.parts.push_back({ffn, ffn});
  const std::vector<Part> parts = weight.parts;
  add_bias(op, exec, op.inner * op.columns, {exec.columns});
  if (prefix == "shared" || (prefix == "mlp" && alive_.contains("input"))) {
    exec.reads_input = true;
    alive_["routed"] = alive_.at("x");
    alive_["routed"].name = "routed";
    dead("input");
  }
  alive("x", 1, parts, {exec.positions, exec.columns});
  return "";
}

std::string LayerLowering::row(const Op& op, ExecOp& exec) {
  exec.kind = ExecOpKind::row;
  Parameter& weight = add(exec, "weight", {exec.columns, exec.inner});
  weight.dim = 1;
  const std::int64_t pieces = alive_.at("x").parts.empty() ? 0 : alive_.at("x").parts[0].pieces;
  weight.parts = {{exec.inner, pieces}};
  add_bias(op, exec, op.inner * op.columns, {exec.columns});
  alive("x", LiveTensor::Cut::stream, {exec.positions, exec.columns});
  return "";
}

std::string LayerLowering::queries_keys_values(const Op& op, ExecOp& exec) {
  exec.kind = ExecOpKind::queries_keys_values;
  const Op* core = find("attention.core");
  if (core == nullptr) return "has no attention.core after it";
  exec.heads = whole(core->count);
  exec.kv_heads = whole(core->kv_count);
  exec.head_dim = whole(core->inner);
  const std::int64_t queries = exec.heads * exec.head_dim;
  const std::int64_t keys = exec.kv_heads * exec.head_dim;
  if (queries + 2 * keys != exec.columns) return "does not make queries, keys and values";
  Parameter& weight = add(exec, "weight", {exec.columns, exec.inner});
  weight.dim = 0;
  weight.parts = {{queries, exec.heads}, {keys, exec.kv_heads}, {keys, exec.kv_heads}};
  add_bias(op, exec, op.inner * op.columns, {exec.columns});
  if (find("attention.residual") == nullptr && find("mlp.norm") == nullptr) {
    exec.keeps_input = true;
    alive_["input"] = alive_.at("x");
    alive_["input"].name = "input";
  }
  dead("x");
  alive("q", 1, {{queries, exec.heads}}, {exec.positions, queries});
  alive("k", 1, {{keys, exec.kv_heads}}, {exec.positions, keys});
  alive("v", 1, {{keys, exec.kv_heads}}, {exec.positions, keys});
  return "";
}

std::string LayerLowering::cross_queries(const Op& op, ExecOp& exec) {
  exec.kind = ExecOpKind::cross_queries;
  const Op* core = find("cross.core");
  if (core == nullptr || !alive_.contains("memory")) return "has no encoder to attend to";
  exec.heads = whole(core->count);
  exec.head_dim = whole(core->inner);
  Parameter& weight = add(exec, "weight", {exec.columns, exec.inner});
  weight.dim = 0;
  weight.parts = {{exec.columns, exec.heads}};
  add_bias(op, exec, op.inner * op.columns, {exec.columns});
  dead("x");
  alive("q", 1, {{exec.columns, exec.heads}}, {exec.positions, exec.columns});
  return "";
}

std::string LayerLowering::cross_keys_values(const Op& op, ExecOp& exec) {
  exec.kind = ExecOpKind::cross_keys_values;
  const Op* core = find("cross.core");
  if (core == nullptr || !alive_.contains("memory")) return "has no encoder to attend to";
  exec.kv_heads = whole(core->kv_count);
  exec.head_dim = whole(core->inner);
  const std::int64_t keys = exec.columns / 2;
  Parameter& weight = add(exec, "weight", {exec.columns, exec.inner});
  weight.dim = 0;
  weight.parts = {{keys, exec.kv_heads}, {keys, exec.kv_heads}};
  add_bias(op, exec, op.inner * op.columns, {exec.columns});
  alive("k", 1, {{keys, exec.kv_heads}}, {whole(op.rows), keys});
  alive("v", 1, {{keys, exec.kv_heads}}, {whole(op.rows), keys});
  return "";
}

std::string LayerLowering::rotary(const Op& op, ExecOp& exec) {
  exec.kind = ExecOpKind::rotary;
  const Op* core = find("attention.core");
  if (core == nullptr || !alive_.contains("q")) return "has no queries and keys to turn";
  exec.positions = shape_of("q")[0];
  exec.heads = whole(core->count);
  exec.kv_heads = whole(core->kv_count);
  exec.head_dim = whole(core->inner);
  exec.rotary_dim =
      whole(op.moved / 2 / static_cast<double>(exec.positions * (exec.heads + exec.kv_heads)));
  if (exec.rotary_dim < 2 || exec.rotary_dim % 2 != 0 || exec.rotary_dim > exec.head_dim)
    return "turns " + std::to_string(exec.rotary_dim) + " features of a head, which must be even";
  return "";
}

std::string LayerLowering::attention(const Op& op, ExecOp& exec) {
  exec.kind = ExecOpKind::attention;
  exec.selective = true;
  if (!alive_.contains("q") || !alive_.contains("k")) return "has no queries and keys";
  if (op.parameters > 0) return "has attention sinks, which are not implemented";
  exec.positions = shape_of("q")[0];
  exec.heads = whole(op.count);
  exec.kv_heads = whole(op.kv_count);
  exec.head_dim = whole(op.inner);
  const bool self = op.name == "attention.core";
  if (exec.positions != whole(op.rows)) return "attends within windows, which is not implemented";
  exec.causal = self && layer_.find("decoder") != std::string::npos;
  if (!relative_.empty()) {
    exec.scaled = false;
    if (self) exec.parameters = relative_;
  }
  for (const char* name : {"q", "k", "v"}) dead(name);
  const std::int64_t width = exec.heads * exec.head_dim;
  alive("x", 1, {{width, exec.heads}}, {exec.positions, width});
  return "";
}

std::string LayerLowering::activation(const Op&, ExecOp& exec) {
  exec.kind = ExecOpKind::activation;
  LiveTensor& x = alive_.at("x");
  if (x.cut != LiveTensor::Cut::features) return "";
  exec.gated = x.parts.size() == 2;
  if (!exec.gated) return "";
  x.parts.pop_back();
  x.shape[1] = x.parts[0].size;
  return "";
}

std::string LayerLowering::residual(const Op&, ExecOp& exec) {
  exec.kind = ExecOpKind::residual;
  if (!in_branch_) return "has nothing to add to";
  in_branch_ = false;
  dead("residual");
  dead("routed");
  return "";
}

}  // namespace plait::runtime
