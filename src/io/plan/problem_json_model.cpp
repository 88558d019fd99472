#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "io/format/json_keys.h"
#include "io/format/json_writer.h"
#include "io/model/architecture_json.h"
#include "io/model/op_fields.h"
#include "io/model/ties_json.h"
#include "io/plan/problem_json.h"
#include "plan/names.h"

namespace plait {
namespace {

// Two stacks of the most layers that a configuration may have, and their ends.
constexpr int kMaxUnits = 200'100;
constexpr int kMaxPeriod = 64;  // longest pattern of kinds that is looked for

// Every number of an op: key, access, and the default that is left out.
struct OpNumber {
  const char* key;
  double& (*of)(Op&);
};
constexpr OpNumber kOpNumbers[] = {
    {"rows", [](Op& op) -> double& { return op.rows; }},
    {"inner", [](Op& op) -> double& { return op.inner; }},
    {"columns", [](Op& op) -> double& { return op.columns; }},
    {"count", [](Op& op) -> double& { return op.count; }},
    {"kv_count", [](Op& op) -> double& { return op.kv_count; }},
    {"forward_flops", [](Op& op) -> double& { return op.forward.value; }},
    {"parameters", [](Op& op) -> double& { return op.parameters; }},
    {"moved", [](Op& op) -> double& { return op.moved; }},
    {"saved", [](Op& op) -> double& { return op.saved; }},
    {"saved_mask_B", [](Op& op) -> double& { return op.saved_mask.value; }},
    {"forward_reduce", [](Op& op) -> double& { return op.forward_reduce; }},
    {"backward_reduce", [](Op& op) -> double& { return op.backward_reduce; }},
    {"expert_exchange", [](Op& op) -> double& { return op.expert_exchange; }},
    {"boundary", [](Op& op) -> double& { return op.boundary; }},
};

std::string dump_op(Op op) {
  // Breaks the build when Op gains a field: it belongs into kOpNumbers or here.
  [[maybe_unused]] const auto& [name, kind, split, rows, inner, columns, count, kv_count, matrices,
                                branches, function, scale_in_fp32, shares_input, gated,
                                combines_experts, writes_scores, scores_in_16_bits, learnt_bias,
                                forward, parameters, moved, saved, saved_mask, saved_is_sharded,
                                saved_is_whole, forward_reduce, backward_reduce, expert_exchange,
                                expert_groups, chosen_groups, boundary, cuts] = op;
  JsonObject json;
  json.text("name", name).text("kind", name_of(kind)).text("split", name_of(split));
  if (function != Function::other) json.text("function", name_of(function));
  Op fresh;
  for (const OpNumber& number : kOpNumbers)
    if (number.of(op) != number.of(fresh)) json.number(number.key, number.of(op));
  if (saved_is_sharded) json.boolean("saved_is_sharded", true);
  write_special_fields(op, json);
  return json.str();
}

Op restore_op(const JsonValue& json) {
  Op op;
  std::vector<std::string_view> keys = {"name", "kind", "split", "function", "saved_is_sharded"};
  for (const OpNumber& number : kOpNumbers) {
    keys.emplace_back(number.key);
    if (const auto value = json.find(number.key)) number.of(op) = value->at_least(0);
  }
  for (const std::string_view key : special_op_keys()) keys.push_back(key);
  allow_only_of(json, keys);
  read_special_fields(json, op);
  op.name = json.at("name").text();
  op.kind = static_cast<OpKind>(json.at("kind").choice(op_kind_names()));
  op.split = static_cast<Split>(json.at("split").choice(split_names()));
  if (const auto function = json.find("function"))
    op.function = static_cast<Function>(function->choice(function_names()));
  op.saved_is_sharded = json.boolean_or("saved_is_sharded", false);
  if (const std::string fault = fault_of(op); !fault.empty()) throw InputError(json.where(), fault);
  return op;
}

std::string dump_kind(const LayerKind& kind) {
  const auto& [name, kind_ops, output, starts_layer, frozen] = kind;
  std::vector<std::string> ops;
  for (const Op& op : kind_ops) ops.push_back(dump_op(op));
  JsonObject object;
  object.text("name", name).number("output", output);
  if (!starts_layer) object.boolean("starts_layer", false);
  if (frozen) object.boolean("frozen", true);
  return object.json("ops", json_list(ops)).str();
}

LayerKind restore_kind(const JsonValue& json) {
  json.allow_only({"name", "output", "starts_layer", "frozen", "ops"});
  LayerKind kind;
  kind.name = json.at("name").text();
  kind.output = json.at("output").at_least(0);
  kind.starts_layer = json.boolean_or("starts_layer", true);
  kind.frozen = json.boolean_or("frozen", false);
  for (const JsonValue& op : json.at("ops").items()) kind.ops.push_back(restore_op(op));
  return kind;
}

// Older files are known by any op with the old fields.
void name_old_fields(const std::vector<JsonValue>& kinds, Model& model) {
  const auto for_each_op = [&](const auto& function) {
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      const std::vector<JsonValue> ops = kinds[k].at("ops").items();
      for (std::size_t o = 0; o < ops.size(); ++o) function(ops[o], model.kinds[k].ops[o]);
    }
  };
  bool is_old = false;
  for_each_op([&](const JsonValue& json, const Op& op) { is_old = is_old || is_old_op(json, op); });
  if (is_old) for_each_op([](const JsonValue& json, Op& op) { name_old_fields(json, op); });
}

// Layers repeat: [0, 1, 1, 1, 2] is [0, {"repeat": 3, "kinds": [1]}, 2]. At each place the pattern
// that covers most units is taken.
std::string dump_units(const std::vector<int>& units) {
  std::vector<std::string> parts;
  const int size = static_cast<int>(units.size());
  for (int at = 0; at < size;) {
    int best_period = 1;
    int best_covered = 1;
    for (int period = 1; period <= std::min(kMaxPeriod, (size - at) / 2); ++period) {
      int end = at + period;
      while (end < size && units[end] == units[end - period]) ++end;
      const int covered = (end - at) / period * period;
      if (covered < 2 * period || covered <= best_covered) continue;
      best_period = period;
      best_covered = covered;
    }
    if (best_covered == 1) {
      parts.push_back(std::to_string(units[at]));
    } else {
      const auto begin = units.begin() + at;
      parts.push_back(fmt::format("{{\"repeat\": {}, \"kinds\": [{}]}}", best_covered / best_period,
                                  fmt::join(begin, begin + best_period, ", ")));
    }
    at += best_covered;
  }
  return json_list(parts);
}

std::vector<int> restore_units(const JsonValue& json, int kinds) {
  std::vector<int> units;
  for (const JsonValue& part : json.items()) {
    if (part.is_number()) {
      units.push_back(part.integer(0, kinds - 1));
      continue;
    }
    part.allow_only({"repeat", "kinds"});
    const int repeat = part.at("repeat").integer(1, kMaxUnits);
    std::vector<int> pattern;
    for (const JsonValue& kind : part.at("kinds").items())
      pattern.push_back(kind.integer(0, kinds - 1));
    if (repeat * pattern.size() + units.size() > kMaxUnits)
      throw InputError(part.where(), fmt::format("makes more than {} units", kMaxUnits));
    for (int i = 0; i < repeat; ++i) units.insert(units.end(), pattern.begin(), pattern.end());
  }
  if (units.empty()) throw InputError(json.where(), "a model has at least one unit");
  return units;
}

}  // namespace

std::string dump_model(const Model& model) {
  const auto& [name, sequence_length, vocabulary, causal, dropout, model_kinds, units, model_ties,
               architecture] = model;
  std::vector<std::string> kinds;
  for (const LayerKind& kind : model_kinds) kinds.push_back(dump_kind(kind));
  JsonObject json;
  json.text("name", name).number("sequence_length", sequence_length);
  json.number("vocabulary", vocabulary).boolean("causal", causal).boolean("dropout", dropout);
  if (const std::string text = dump_architecture(architecture); !text.empty())
    json.json("architecture", text);
  json.json("units", dump_units(units)).json("ties", dump_ties(model_ties));
  return json.json("kinds", json_list(kinds)).str();
}

Model restore_model(const JsonValue& json) {
  json.allow_only({"name", "sequence_length", "vocabulary", "causal", "dropout", "architecture",
                   "units", "ties", "kinds"});
  Model model;
  model.name = json.at("name").text();
  model.sequence_length = json.at("sequence_length").integer(1, kMaxInt);
  model.vocabulary = json.integer_or("vocabulary", 0, kMaxInt, 0);
  model.causal = json.boolean_or("causal", false);
  model.dropout = json.boolean_or("dropout", false);
  const std::vector<JsonValue> kinds = json.at("kinds").items();
  for (const JsonValue& kind : kinds) model.kinds.push_back(restore_kind(kind));
  name_old_fields(kinds, model);
  if (model.kinds.empty()) throw InputError(json.at("kinds").where(), "must not be empty");
  model.units = restore_units(json.at("units"), static_cast<int>(model.kinds.size()));
  if (const auto ties = json.find("ties")) model.ties = restore_ties(*ties, model);
  const auto architecture = json.find("architecture");
  model.architecture = architecture ? restore_architecture(*architecture) : NotRecorded{};
  if (const std::string fault = architecture_fault(model); !fault.empty())
    throw InputError(architecture->where(), fault);
  return model;
}

}  // namespace plait
