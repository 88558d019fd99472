#include "io/model/plait_model.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "io/format/json_keys.h"
#include "io/model/architecture_json.h"
#include "io/model/op_fields.h"
#include "io/model/ties_json.h"
#include "model/gan.h"
#include "model/resnet.h"
#include "model/transformer.h"
#include "plan/names.h"

namespace plait {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostModelSize = 1 << 28;
constexpr int kMostUnits = 200'100;  // as in plan files
constexpr std::size_t kMostKinds = 1000;
// Of all kinds: a saved file has at most 30 values for each, and two million in all.
constexpr std::size_t kMostOps = 50'000;

const std::vector<std::string_view> kOpKinds = {
    "matmul", "attention", "convolution", "norm", "elementwise", "embedding", "loss", "reduction"};
const std::vector<std::string_view> kSplits = {"replicated", "column",  "row",  "heads",
                                               "vocabulary", "experts", "shard"};

double amount(const JsonValue& object, std::string_view key, double fallback) {
  const auto value = object.find(key);
  return value ? value->at_least(0) : fallback;
}

// Counts that follow from the shape may be left out for products; the others are 0 then.
Op read_op(const JsonValue& object) {
  std::vector<std::string_view> keys = {"name",
                                        "kind",
                                        "split",
                                        "rows",
                                        "inner",
                                        "columns",
                                        "count",
                                        "kv_count",
                                        "function",
                                        "forward_flops",
                                        "parameters",
                                        "moved",
                                        "saved",
                                        "saved_bytes",
                                        "saved_is_sharded",
                                        "forward_reduce",
                                        "backward_reduce",
                                        "expert_exchange",
                                        "boundary"};
  for (const std::string_view key : special_op_keys()) keys.push_back(key);
  allow_only_of(object, keys);
  Op op;
  op.name = object.at("name").text();
  op.kind = static_cast<OpKind>(object.at("kind").choice(kOpKinds));
  if (const auto split = object.find("split"))
    op.split = static_cast<Split>(split->choice(kSplits));
  op.rows = amount(object, "rows", 0);
  op.inner = amount(object, "inner", 0);
  op.columns = amount(object, "columns", 0);
  op.count = amount(object, "count", 1);
  op.kv_count = amount(object, "kv_count", op.kind == OpKind::attention ? op.count : 0);
  if (const auto function = object.find("function"))
    op.function = static_cast<Function>(function->choice(function_names()));
  const bool product = op.kind == OpKind::matmul || op.kind == OpKind::convolution;
  const double times = product ? op.count : 0;
  const double work = op.kind == OpKind::attention ? 4 * op.count : 2 * times;
  op.forward = Flops(amount(object, "forward_flops", work * op.rows * op.inner * op.columns));
  op.parameters = amount(object, "parameters", times * op.inner * op.columns);
  op.moved = amount(object, "moved", times * op.rows * (op.inner + op.columns));
  op.saved = amount(object, "saved", times * op.rows * op.inner);
  op.saved_mask = Bytes(amount(object, "saved_bytes", 0));
  op.saved_is_sharded = object.boolean_or("saved_is_sharded", op.split == Split::row);
  op.forward_reduce =
      amount(object, "forward_reduce", op.split == Split::row ? times * op.rows * op.columns : 0);
  op.backward_reduce = amount(object, "backward_reduce", 0);
  op.expert_exchange = amount(object, "expert_exchange", 0);
  op.boundary = amount(object, "boundary", times * op.rows * op.columns);
  read_special_fields(object, op);
  if (is_old_op(object, op)) name_old_fields(object, op);
  if (const std::string fault = fault_of(op); !fault.empty())
    throw InputError(object.where(), fault);
  return op;
}

LayerKind read_kind(const JsonValue& object) {
  object.allow_only({"name", "ops", "output"});
  LayerKind kind;
  kind.name = object.at("name").text();
  for (const JsonValue& op : object.at("ops").items()) kind.ops.push_back(read_op(op));
  if (kind.ops.empty()) throw InputError(object.at("ops").where(), "must have at least one op");
  kind.output = amount(object, "output", kind.ops.back().boundary);
  return kind;
}

// A unit is the name of its kind, or {"kind": ..., "times": ...}.
void read_units(const JsonValue& list, Model& model) {
  std::vector<std::string_view> names;
  for (const LayerKind& kind : model.kinds) names.emplace_back(kind.name);
  for (const JsonValue& item : list.items()) {
    int times = 1;
    if (item.is_object()) {
      item.allow_only({"kind", "times"});
      times = item.integer_or("times", 1, kMostUnits, 1);
    }
    const int kind = (item.is_object() ? item.at("kind") : item).choice(names);
    if (model.unit_count() + times > kMostUnits)
      throw InputError(item.where(), fmt::format("more than {} units", kMostUnits));
    model.units.insert(model.units.end(), times, kind);
  }
  if (model.units.empty()) throw InputError(list.where(), "must have at least one unit");
}

Model read_ops(const JsonValue& root) {
  root.allow_only({"plait_model", "name", "sequence_length", "vocabulary", "causal", "dropout",
                   "kinds", "units", "ties"});
  Model model;
  model.sequence_length = root.integer_or("sequence_length", 1, kMostModelSize, 1);
  model.vocabulary = root.integer_or("vocabulary", 0, kMostModelSize, 0);
  model.causal = root.boolean_or("causal", false);
  model.dropout = root.boolean_or("dropout", false);
  std::set<std::string> names;
  std::size_t ops = 0;
  for (const JsonValue& kind : root.at("kinds").items()) {
    ops += kind.at("ops").items().size();
    if (ops > kMostOps) throw InputError(kind.where(), fmt::format("more than {} ops", kMostOps));
    model.kinds.push_back(read_kind(kind));
    const std::string& name = model.kinds.back().name;
    if (!names.insert(name).second)
      throw InputError(kind.where() + "/name", fmt::format("two kinds are called '{}'", name));
  }
  if (model.kinds.size() > kMostKinds)
    throw InputError(root.at("kinds").where(), fmt::format("more than {} kinds", kMostKinds));
  read_units(root.at("units"), model);
  if (const auto ties = root.find("ties")) model.ties = restore_ties(*ties, model);
  return model;
}

// A whole number is written without a fraction.
Json number(double value) {
  if (value == std::floor(value) && std::abs(value) < 0x1p53)
    return static_cast<std::int64_t>(value);
  return value;
}

Json op_json(const Op& op) {
  Json out = {{"name", op.name},
              {"kind", kOpKinds[static_cast<std::size_t>(op.kind)]},
              {"split", kSplits[static_cast<std::size_t>(op.split)]}};
  const std::pair<const char*, double> amounts[] = {{"rows", op.rows},
                                                    {"inner", op.inner},
                                                    {"columns", op.columns},
                                                    {"count", op.count},
                                                    {"kv_count", op.kv_count},
                                                    {"forward_flops", op.forward.value},
                                                    {"parameters", op.parameters},
                                                    {"moved", op.moved},
                                                    {"saved", op.saved},
                                                    {"saved_bytes", op.saved_mask.value},
                                                    {"forward_reduce", op.forward_reduce},
                                                    {"backward_reduce", op.backward_reduce},
                                                    {"expert_exchange", op.expert_exchange},
                                                    {"boundary", op.boundary}};
  for (const auto& [key, value] : amounts) out[key] = number(value);
  out["saved_is_sharded"] = op.saved_is_sharded;
  if (op.function != Function::other) out["function"] = name_of(op.function);
  JsonObject special;
  write_special_fields(op, special);
  out.update(Json::parse(special.str()));
  return out;
}

Json units_json(const Model& model) {
  Json out = Json::array();
  for (int i = 0; i < model.unit_count();) {
    int end = i + 1;
    while (end < model.unit_count() && model.units[end] == model.units[i]) ++end;
    out.push_back({{"kind", model.unit(i).name}, {"times", end - i}});
    i = end;
  }
  return out;
}

}  // namespace

LoadedModel read_plait_model(const JsonValue& root, std::optional<int> sequence) {
  root.at("plait_model").integer(1, 1);
  if (sequence && (*sequence < 1 || *sequence > kMostModelSize))
    throw InputError("sequence length",
                     fmt::format("must be from 1 to {}, is {}", kMostModelSize, *sequence));
  LoadedModel loaded;
  if (const auto object = root.find("transformer")) {
    root.allow_only({"plait_model", "name", "transformer"});
    TransformerConfig config = read_transformer_config(*object);
    if (sequence) config.sequence = *sequence;
    loaded.model = build_transformer(config);
  } else {
    if (const auto resnet = root.find("wide_resnet")) {
      root.allow_only({"plait_model", "name", "wide_resnet"});
      loaded.model = build_wide_resnet(read_wide_resnet_config(*resnet));
    } else if (const auto gan = root.find("transgan")) {
      root.allow_only({"plait_model", "name", "transgan"});
      loaded.model = build_transgan(read_transgan_config(*gan));
    } else if (root.find("kinds")) {
      loaded.model = read_ops(root);
    } else {
      throw InputError(root.where(),
                       "one of 'transformer', 'wide_resnet', 'transgan' or 'kinds' is needed");
    }
    if (sequence && *sequence != loaded.model.sequence_length)
      loaded.warnings.emplace_back(
          "the model has a fixed sample size: the sequence length is ignored");
  }
  loaded.model.name = root.text_or("name", "model");
  return loaded;
}

std::string write_plait_model(const Model& model) {
  Json out = {{"plait_model", 1}, {"name", model.name}};
  std::optional<Model> built = build(model.architecture);
  if (built) built->name = model.name;
  if (built == model) {
    out.update(Json::parse(dump_architecture(model.architecture)));
    return out.dump(2) + "\n";
  }
  out.update({{"sequence_length", model.sequence_length},
              {"vocabulary", model.vocabulary},
              {"causal", model.causal},
              {"dropout", model.dropout}});
  out["kinds"] = Json::array();
  for (const LayerKind& kind : model.kinds) {
    Json ops = Json::array();
    for (const Op& op : kind.ops) ops.push_back(op_json(op));
    out["kinds"].push_back({{"name", kind.name}, {"output", number(kind.output)}, {"ops", ops}});
  }
  out["units"] = units_json(model);
  out["ties"] = Json::parse(dump_ties(model.ties));
  return out.dump(2) + "\n";
}

}  // namespace plait
