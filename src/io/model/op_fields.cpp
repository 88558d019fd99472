#include "io/model/op_fields.h"

#include "base/error.h"
#include "plan/names.h"

namespace plait {
namespace {

struct OpSwitch {
  std::string_view key;
  bool Op::*at;
};

constexpr OpSwitch kOpSwitches[] = {
    {"scale_in_fp32", &Op::scale_in_fp32},
    {"shares_input", &Op::shares_input},
    {"gated", &Op::gated},
    {"combines_experts", &Op::combines_experts},
    {"writes_scores", &Op::writes_scores},
    {"scores_in_16_bits", &Op::scores_in_16_bits},
    {"learnt_bias", &Op::learnt_bias},
};

struct OpAmount {
  std::string_view key;
  double Op::*at;
};

constexpr OpAmount kAmounts[] = {{"matrices", &Op::matrices},
                                 {"branches", &Op::branches},
                                 {"expert_groups", &Op::expert_groups},
                                 {"chosen_groups", &Op::chosen_groups}};

std::string dump_cuts(const std::vector<OpCut>& cuts) {
  std::vector<std::string> list;
  for (const auto& [split, input, output, input_gradient] : cuts)
    list.push_back(JsonObject()
                       .text("split", name_of(split))
                       .text("input", name_of(input))
                       .text("output", name_of(output))
                       .text("input_gradient", name_of(input_gradient))
                       .str());
  return json_list(list);
}

TensorLayout restore_layout(const JsonValue& json) {
  return static_cast<TensorLayout>(json.choice(tensor_layout_names()));
}

OpCut restore_cut(const JsonValue& json) {
  json.allow_only({"split", "input", "output", "input_gradient"});
  if (restore_layout(json.at("input")) == TensorLayout::partial_sums)
    throw InputError(json.at("input").where(),
                     "no op takes partial sums; must be whole, "
                     "by-feature or by-position");
  return {static_cast<Split>(json.at("split").choice(split_names())),
          restore_layout(json.at("input")), restore_layout(json.at("output")),
          restore_layout(json.at("input_gradient"))};
}

}  // namespace

std::vector<std::string_view> special_op_keys() {
  std::vector<std::string_view> keys{"parts", "cuts"};
  for (const OpAmount& amount : kAmounts) keys.push_back(amount.key);
  for (const OpSwitch& on_or_off : kOpSwitches) keys.push_back(on_or_off.key);
  return keys;
}

void read_special_fields(const JsonValue& object, Op& op) {
  for (const OpAmount& amount : kAmounts)
    if (const auto value = object.find(amount.key)) op.*amount.at = value->at_least(0);
  for (const OpSwitch& on_or_off : kOpSwitches)
    op.*on_or_off.at = object.boolean_or(on_or_off.key, false);
  if (const auto cuts = object.find("cuts"))
    for (const JsonValue& cut : cuts->items()) op.cuts.push_back(restore_cut(cut));
}

void write_special_fields(const Op& op, JsonObject& object) {
  const Op fresh;
  for (const OpAmount& amount : kAmounts)
    if (op.*amount.at != fresh.*amount.at) object.number(amount.key, op.*amount.at);
  for (const OpSwitch& on_or_off : kOpSwitches)
    if (op.*on_or_off.at) object.boolean(on_or_off.key, true);
  if (!op.cuts.empty()) object.json("cuts", dump_cuts(op.cuts));
}

bool is_old_op(const JsonValue& object, const Op& op) {
  const bool added_to_scores = op.kind == OpKind::attention && op.function == Function::add;
  return object.find("parts") || added_to_scores;
}

void name_old_fields(const JsonValue& object, Op& op) {
  const auto value = object.find("parts");
  const double parts = value ? value->at_least(0) : 1;
  if (op.kind == OpKind::norm) {
    op.scale_in_fp32 = parts == 2;
    op.shares_input = parts == 0;
  } else if (op.function == Function::add && op.kind != OpKind::attention) {
    op.branches = parts;
  } else {
    op.matrices = parts;
  }
  op.gated = is_activation(op.function) && op.moved < 2 * op.saved;
  op.combines_experts = op.kind == OpKind::elementwise && op.moved == 0;
  if (op.kind != OpKind::attention || op.function != Function::add) return;
  op.function = Function::other;
  op.writes_scores = true;
  op.scores_in_16_bits = parts == 1 && op.kv_count == op.count;
  op.learnt_bias = parts > 1;
}

}  // namespace plait
