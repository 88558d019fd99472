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
    Step step;
    step.name = op->name;
    step.function = op->function;
    const std::string fault = one(*op, step);
    if (!fault.empty()) return "op '" + op->name + "' " + fault;
    for (const auto& [key, tensor] : alive_) step.alive.push_back(tensor);
    steps_.all.push_back(std::move(step));
    previous_ = op;
  }
  return "";
}

std::string LayerLowering::one(const Op& op, Step& step) {
  const auto lower = by_name().find(op.name);
  if (lower == by_name().end()) return "is not one that can be run";
  if (number_ > 0 && alive_.empty()) return "follows the loss";
  begin_branch(op, step);
  step.positions = alive_.contains("x") ? shape_of("x")[0] : whole(op.rows);
  step.inner = whole(op.inner);
  step.columns = whole(op.columns);
  return (this->*lower->second)(op, step);
}

// A sub-layer keeps the stream to add its result to. It begins with any of its ops, except a norm
// that comes after the adding (BERT).
void LayerLowering::begin_branch(const Op& op, Step& step) {
  const std::string prefix = prefix_of(op.name);
  const bool sublayer = prefix == "attention" || prefix == "cross" || prefix == "mlp" ||
                        prefix == "router" || op.name == "conv1";
  if (in_branch_ || !sublayer || layer_ == "stem") return;
  if (op.name == prefix + ".norm" && previous_ != nullptr &&
      previous_->name == prefix + ".residual")
    return;
  in_branch_ = step.begins_branch = true;
  alive_["residual"] = alive_.at("x");
  alive_["residual"].name = "residual";
}

const Op* LayerLowering::find(const std::string& name) const {
  for (const Op* op : ops_)
    if (op->name == name) return op;
  return nullptr;
}

Parameter& LayerLowering::add(Step& step, const std::string& what,
                              std::vector<std::int64_t> shape) {
  Parameter parameter;
  parameter.name = std::to_string(number_) + "." + step.name + "." + what;
  parameter.shape = std::move(shape);
  if (what == "bias") parameter.start = Start::zeros;
  step.parameters.push_back(std::move(parameter));
  return step.parameters.back();
}

void LayerLowering::add_bias(const Op& op, Step& step, double weights,
                             std::vector<std::int64_t> shape) {
  if (op.parameters <= weights) return;
  const Parameter& weight = step.parameters.front();
  const int dim = weight.dim;
  const std::vector<Part> parts = weight.parts;
  Parameter& bias = add(step, "bias", std::move(shape));
  if (dim != 0) return;
  bias.dim = 0;
  bias.parts = parts;
}

void LayerLowering::alive(const std::string& name, Alive::Cut cut,
                          std::vector<std::int64_t> shape) {
  alive_[name] = {.name = name, .shape = std::move(shape), .cut = cut};
}

void LayerLowering::alive(const std::string& name, int dim, std::vector<Part> parts,
                          std::vector<std::int64_t> shape) {
  alive_[name] = {.name = name,
                  .shape = std::move(shape),
                  .cut = Alive::Cut::features,
                  .dim = dim,
                  .parts = std::move(parts)};
}

const std::vector<std::int64_t>& LayerLowering::shape_of(const std::string& name) const {
  return alive_.at(name).shape;
}

std::string LayerLowering::tokens(const Op& op, Step& step) {
  step.kind = StepKind::tokens;
  const std::int64_t rows = whole(op.rows);
  if (alive_.contains("x")) {
    step.keeps_memory = true;
    alive_["memory"] = alive_.at("x");
    alive_["memory"].name = "memory";
    steps_.target = rows;
  } else {
    steps_.source = rows;
    steps_.vocabulary = whole(op.parameters / op.columns);
  }
  step.positions = rows;
  Parameter& table = add(step, "weight", {steps_.vocabulary, step.columns});
  table.dim = 0;
  table.parts = {{steps_.vocabulary, 0}};
  hidden_ = step.columns;
  alive("x", Alive::Cut::stream, {rows, step.columns});
  return "";
}

std::string LayerLowering::positions(const Op& op, Step& step) {
  step.kind = StepKind::positions;
  add(step, "weight", {whole(op.parameters / op.columns), step.columns});
  if (step.parameters[0].shape[0] < step.positions) return "has fewer rows than positions";
  return "";
}

std::string LayerLowering::types(const Op& op, Step& step) {
  step.kind = StepKind::types;
  steps_.type_rows = whole(op.parameters / op.columns);
  add(step, "weight", {steps_.type_rows, step.columns});
  return "";
}

std::string LayerLowering::patches(const Op& op, Step& step) {
  step.kind = StepKind::patches;
  steps_.images = true;
  const std::int64_t side = whole(std::sqrt(op.rows));
  const std::int64_t channels = 3;
  step.kernel = step.stride = whole(std::sqrt(op.inner / 3));
  if (side * side != whole(op.rows) || step.kernel * step.kernel * channels != step.inner)
    return "is no square of square patches of 3 channels";
  step.side = side;
  steps_.source = side * step.kernel;
  add(step, "weight", {step.columns, channels, step.kernel, step.kernel}).start = Start::kaiming;
  add_bias(op, step, op.inner * op.columns, {step.columns});
  alive("x", Alive::Cut::stream, {whole(op.rows), step.columns});
  return "";
}

std::string LayerLowering::class_token(const Op& op, Step& step) {
  step.kind = StepKind::class_token;
  const std::vector<std::int64_t> shape = shape_of("x");
  const std::int64_t tokens = whole(op.parameters) / shape[1];  // DeiT has two
  add(step, "weight", {tokens * shape[1]});
  alive("x", Alive::Cut::stream, {shape[0] + tokens, shape[1]});
  return "";
}

std::string LayerLowering::relative_bias(const Op& op, Step& step) {
  step.kind = StepKind::relative_bias;
  // Heads are known to the blocks: kept [heads, buckets], so that they are cut along dimension 0.
  const std::int64_t buckets = 32;
  const std::int64_t heads = whole(op.parameters / buckets);
  if (heads * buckets != whole(op.parameters)) return "has another number of buckets than 32";
  Parameter& table = add(step, "weight", {heads, buckets});
  table.dim = 0;
  table.parts = {{heads, heads}};
  relative_ = {table};
  relative_[0].owned = false;
  return "";
}

std::string LayerLowering::nothing(const Op&, Step&) { return ""; }

std::string LayerLowering::norm(const Op& op, Step& step) {
  step.kind = StepKind::norm;
  if (op.name == "mlp.norm" && previous_ != nullptr && previous_->name == "attention.projection") {
    step.reads_residual = true;  // a parallel block
    alive_["routed"] = alive_.at("x");
    alive_["routed"].name = "routed";
    alive_["x"] = alive_.at("residual");
    alive_["x"].name = "x";
  }
  if (op.parameters == 0) return "";
  add(step, "weight", {step.columns}).start = Start::ones;
  add_bias(op, step, op.columns, {step.columns});
  return "";
}

std::string LayerLowering::qk_norm(const Op& op, Step& step) {
  step.kind = StepKind::qk_norm;
  const Op* core = find("attention.core");
  if (core == nullptr) return "has no attention.core after it";
  step.heads = whole(core->count);
  step.kv_heads = whole(core->kv_count);
  step.head_dim = whole(core->inner);
  const std::int64_t per_feature = op.function == Function::layer_norm ? 2 : 1;
  if (whole(op.parameters) != per_feature * 2 * step.head_dim)
    return "normalises all heads together, which is not implemented";
  for (const char* side : {"query", "key"}) {
    const std::string name = side;
    add(step, name + "_weight", {step.head_dim}).start = Start::ones;
    step.parameters.back().gradient = GradientOf::part;
    if (per_feature == 1) continue;
    add(step, name + "_bias", {step.head_dim}).start = Start::zeros;
    step.parameters.back().gradient = GradientOf::part;
  }
  return "";
}

std::string LayerLowering::dense(const Op& op, Step& step) {
  step.kind = StepKind::dense;
  add(step, "weight", {step.columns, step.inner});
  add_bias(op, step, op.inner * op.columns, {step.columns});
  alive("x", Alive::Cut::stream, {step.positions, step.columns});
  return "";
}

std::string LayerLowering::column(const Op& op, Step& step) {
  step.kind = StepKind::column;
  const std::string prefix = prefix_of(op.name);
  const Op* down = find(prefix + ".down");
  if (down == nullptr) return "has no matrix down after it";
  step.gated = down->inner * 2 == op.columns;
  const std::int64_t ffn = whole(down->inner);
  Parameter& weight = add(step, "weight", {step.columns, step.inner});
  weight.dim = 0;
  weight.parts = {{ffn, ffn}};
  if (step.gated) weight.parts.push_back({ffn, ffn});
  const std::vector<Part> parts = weight.parts;
  add_bias(op, step, op.inner * op.columns, {step.columns});
  if (prefix == "shared" || (prefix == "mlp" && alive_.contains("input"))) {
    step.reads_input = true;
    alive_["routed"] = alive_.at("x");
    alive_["routed"].name = "routed";
    dead("input");
  }
  alive("x", 1, parts, {step.positions, step.columns});
  return "";
}

std::string LayerLowering::row(const Op& op, Step& step) {
  step.kind = StepKind::row;
  Parameter& weight = add(step, "weight", {step.columns, step.inner});
  weight.dim = 1;
  const std::int64_t pieces = alive_.at("x").parts.empty() ? 0 : alive_.at("x").parts[0].pieces;
  weight.parts = {{step.inner, pieces}};
  add_bias(op, step, op.inner * op.columns, {step.columns});
  alive("x", Alive::Cut::stream, {step.positions, step.columns});
  return "";
}

std::string LayerLowering::queries_keys_values(const Op& op, Step& step) {
  step.kind = StepKind::queries_keys_values;
  const Op* core = find("attention.core");
  if (core == nullptr) return "has no attention.core after it";
  step.heads = whole(core->count);
  step.kv_heads = whole(core->kv_count);
  step.head_dim = whole(core->inner);
  const std::int64_t queries = step.heads * step.head_dim;
  const std::int64_t keys = step.kv_heads * step.head_dim;
  if (queries + 2 * keys != step.columns) return "does not make queries, keys and values";
  Parameter& weight = add(step, "weight", {step.columns, step.inner});
  weight.dim = 0;
  weight.parts = {{queries, step.heads}, {keys, step.kv_heads}, {keys, step.kv_heads}};
  add_bias(op, step, op.inner * op.columns, {step.columns});
  if (find("attention.residual") == nullptr && find("mlp.norm") == nullptr) {
    step.keeps_input = true;
    alive_["input"] = alive_.at("x");
    alive_["input"].name = "input";
  }
  dead("x");
  alive("q", 1, {{queries, step.heads}}, {step.positions, queries});
  alive("k", 1, {{keys, step.kv_heads}}, {step.positions, keys});
  alive("v", 1, {{keys, step.kv_heads}}, {step.positions, keys});
  return "";
}

std::string LayerLowering::cross_queries(const Op& op, Step& step) {
  step.kind = StepKind::cross_queries;
  const Op* core = find("cross.core");
  if (core == nullptr || !alive_.contains("memory")) return "has no encoder to attend to";
  step.heads = whole(core->count);
  step.head_dim = whole(core->inner);
  Parameter& weight = add(step, "weight", {step.columns, step.inner});
  weight.dim = 0;
  weight.parts = {{step.columns, step.heads}};
  add_bias(op, step, op.inner * op.columns, {step.columns});
  dead("x");
  alive("q", 1, {{step.columns, step.heads}}, {step.positions, step.columns});
  return "";
}

std::string LayerLowering::cross_keys_values(const Op& op, Step& step) {
  step.kind = StepKind::cross_keys_values;
  const Op* core = find("cross.core");
  if (core == nullptr || !alive_.contains("memory")) return "has no encoder to attend to";
  step.kv_heads = whole(core->kv_count);
  step.head_dim = whole(core->inner);
  const std::int64_t keys = step.columns / 2;
  Parameter& weight = add(step, "weight", {step.columns, step.inner});
  weight.dim = 0;
  weight.parts = {{keys, step.kv_heads}, {keys, step.kv_heads}};
  add_bias(op, step, op.inner * op.columns, {step.columns});
  alive("k", 1, {{keys, step.kv_heads}}, {whole(op.rows), keys});
  alive("v", 1, {{keys, step.kv_heads}}, {whole(op.rows), keys});
  return "";
}

std::string LayerLowering::rotary(const Op& op, Step& step) {
  step.kind = StepKind::rotary;
  const Op* core = find("attention.core");
  if (core == nullptr || !alive_.contains("q")) return "has no queries and keys to turn";
  step.positions = shape_of("q")[0];
  step.heads = whole(core->count);
  step.kv_heads = whole(core->kv_count);
  step.head_dim = whole(core->inner);
  step.rotary_dim =
      whole(op.moved / 2 / static_cast<double>(step.positions * (step.heads + step.kv_heads)));
  if (step.rotary_dim < 2 || step.rotary_dim % 2 != 0 || step.rotary_dim > step.head_dim)
    return "turns " + std::to_string(step.rotary_dim) + " features of a head, which must be even";
  return "";
}

std::string LayerLowering::attention(const Op& op, Step& step) {
  step.kind = StepKind::attention;
  step.selective = true;
  if (!alive_.contains("q") || !alive_.contains("k")) return "has no queries and keys";
  if (op.parameters > 0) return "has attention sinks, which are not implemented";
  step.positions = shape_of("q")[0];
  step.heads = whole(op.count);
  step.kv_heads = whole(op.kv_count);
  step.head_dim = whole(op.inner);
  const bool self = op.name == "attention.core";
  if (step.positions != whole(op.rows)) return "attends within windows, which is not implemented";
  step.causal = self && layer_.find("decoder") != std::string::npos;
  if (!relative_.empty()) {
    step.scaled = false;
    if (self) step.parameters = relative_;
  }
  for (const char* name : {"q", "k", "v"}) dead(name);
  const std::int64_t width = step.heads * step.head_dim;
  alive("x", 1, {{width, step.heads}}, {step.positions, width});
  return "";
}

std::string LayerLowering::activation(const Op&, Step& step) {
  step.kind = StepKind::activation;
  Alive& x = alive_.at("x");
  if (x.cut != Alive::Cut::features) return "";
  step.gated = x.parts.size() == 2;
  if (!step.gated) return "";
  x.parts.pop_back();
  x.shape[1] = x.parts[0].size;
  return "";
}

std::string LayerLowering::residual(const Op&, Step& step) {
  step.kind = StepKind::residual;
  if (!in_branch_) return "has nothing to add to";
  in_branch_ = false;
  dead("residual");
  dead("routed");
  return "";
}

}  // namespace plait::runtime
