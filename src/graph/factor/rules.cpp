#include <array>
#include <set>
#include <string_view>
#include <unordered_map>

#include "graph/factor/rule_builder.h"
#include "graph/hlo/attributes.h"

namespace plait::graph {
namespace {

using RuleFunction = void (*)(RuleBuilder&);

constexpr std::array<std::string_view, 61> kElementwise{"abs",
                                                        "add",
                                                        "and",
                                                        "atan2",
                                                        "cbrt",
                                                        "ceil",
                                                        "clamp",
                                                        "compare",
                                                        "complex",
                                                        "convert",
                                                        "copy",
                                                        "copy-start",
                                                        "cosine",
                                                        "count-leading-zeros",
                                                        "divide",
                                                        "erf",
                                                        "exponential",
                                                        "exponential-minus-one",
                                                        "floor",
                                                        "imag",
                                                        "is-finite",
                                                        "log",
                                                        "log-plus-one",
                                                        "logistic",
                                                        "map",
                                                        "maximum",
                                                        "minimum",
                                                        "multiply",
                                                        "negate",
                                                        "not",
                                                        "or",
                                                        "popcnt",
                                                        "power",
                                                        "real",
                                                        "reduce-precision",
                                                        "remainder",
                                                        "round-nearest-afz",
                                                        "round-nearest-even",
                                                        "rsqrt",
                                                        "select",
                                                        "shift-left",
                                                        "shift-right-arithmetic",
                                                        "shift-right-logical",
                                                        "sign",
                                                        "sine",
                                                        "sqrt",
                                                        "stochastic-convert",
                                                        "subtract",
                                                        "tan",
                                                        "tanh",
                                                        "xor",
                                                        "all-reduce",
                                                        "all-reduce-start",
                                                        "all-reduce-done",
                                                        "collective-permute",
                                                        "optimization-barrier",
                                                        "opt-barrier",
                                                        "acos",
                                                        "asin",
                                                        "sinh",
                                                        "cosh"};

const std::unordered_map<std::string_view, RuleFunction>& rule_table() {
  static const std::unordered_map<std::string_view, RuleFunction> table = [] {
    std::unordered_map<std::string_view, RuleFunction> made{
        {"dot", dot_rule},
        {"convolution", convolution_rule},
        {"gather", gather_rule},
        {"scatter", scatter_rule},
        {"batch-norm-training", batch_norm_rule},
        {"batch-norm-inference", batch_norm_rule},
        {"batch-norm-grad", batch_norm_rule},
        {"reduce", reduce_rule},
        {"broadcast", broadcast_rule},
        {"transpose", transpose_rule},
        {"reverse", reverse_rule},
        {"reshape", reshape_rule},
        {"bitcast", reshape_rule},
        {"slice", slice_rule},
        {"pad", pad_rule},
        {"concatenate", concatenate_rule},
        {"dynamic-slice", dynamic_slice_rule},
        {"dynamic-update-slice", dynamic_update_slice_rule},
        {"reduce-window", window_rule},
        {"select-and-scatter", window_rule},
        {"sort", sort_rule},
        {"topk", top_k_rule},
        {"iota", source_rule},
        {"constant", source_rule},
        {"parameter", source_rule},
        {"rng", source_rule},
        {"partition-id", source_rule},
        {"replica-id", source_rule},
        {"after-all", source_rule},
        {"infeed", source_rule},
        {"cholesky", matrix_rule},
        {"triangular-solve", matrix_rule},
        {"fft", replicated_rule},  // as XLA's partitioner does it
        {"rng-bit-generator", replicated_rule},
        {"rng-get-and-update-state", replicated_rule},
        {"all-gather", replicated_rule},
        {"all-to-all", replicated_rule},
        {"reduce-scatter", replicated_rule},
        {"tuple", replicated_rule},
    };
    for (const std::string_view op : kElementwise) made.emplace(op, elementwise_rule);
    return made;
  }();
  return table;
}

// Custom calls that do nothing to the numbers, or something to each of them.
RuleFunction custom_call_rule(const std::string& target) {
  constexpr std::array<std::string_view, 10> kSame{"Sharding",
                                                   "annotate_device_placement",
                                                   "mhlo.erf",
                                                   "mhlo.asin",
                                                   "mhlo.acos",
                                                   "SPMDFullToShardShape",
                                                   "SPMDShardToFullShape",
                                                   "MoveToHost",
                                                   "MoveToDevice",
                                                   "xla.sdy.FuncResultSharding"};
  for (const std::string_view same : kSame)
    if (target == same) return elementwise_rule;
  if (target == "TopK" || target == "mhlo.topk") return top_k_rule;
  return nullptr;
}

RuleFunction function_for(const RuleBuilder& builder, const Node& node) {
  if (node.kind == NodeKind::argument) return source_rule;
  if (node.kind != NodeKind::op) return elementwise_rule;
  const std::string& opcode = node.source->opcode;
  if (opcode == "custom-call") {
    const RuleFunction found = custom_call_rule(custom_call_target(*node.source));
    const bool fits = builder.operand_count() >= 1 && builder.output_count() >= 1 &&
                      (found != elementwise_rule || builder.operand(0) == builder.output());
    return fits ? found : nullptr;
  }
  if (opcode == "bitcast-convert")
    return builder.operand_count() == 1 && builder.operand(0) == builder.output() ? elementwise_rule
                                                                                  : replicated_rule;
  const auto found = rule_table().find(opcode);
  return found == rule_table().end() ? nullptr : found->second;
}

std::string kind_of(const Instruction& it) {
  return it.opcode == "custom-call" ? "custom call " + custom_call_target(it) : it.opcode;
}

}  // namespace

std::vector<Rule> rules_of(const Program& program, std::vector<std::string>& warnings) {
  std::vector<Rule> rules;
  rules.reserve(program.nodes.size());
  std::set<std::string> unknown;
  for (const Node& node : program.nodes) {
    RuleBuilder builder(program, node);
    const RuleFunction function = function_for(builder, node);
    if (function != nullptr) function(builder);
    rules.push_back(builder.finish());
    rules.back().known = function != nullptr;
    if (function == nullptr && unknown.insert(kind_of(*node.source)).second)
      warnings.push_back(program.module->place(*node.source) + ": " + kind_of(*node.source) +
                         " has no rule; it is planned as replicated");
  }
  return rules;
}

bool is_contraction(const Program& program, const Node& node) {
  if (node.is("dot") || node.is("convolution")) return true;
  if (node.operands.empty() || (!node.is("gather") && !node.is("scatter"))) return false;
  const Shape& rows = *program.values[node.operands.front()].shape;
  return rows.dims.size() >= 2 && is_floating(rows.type);
}

std::string text_of(const Rule& rule) {
  const auto name = [](int f) {
    const std::string letter(1, static_cast<char>('i' + f % 18));
    return f < 18 ? letter : letter + std::to_string(f / 18);
  };
  const auto tensors = [&](const std::vector<TensorFactors>& all) {
    std::string out = "(";
    for (std::size_t t = 0; t < all.size(); ++t) {
      out += t > 0 ? ",[" : "[";
      for (std::size_t d = 0; d < all[t].size(); ++d) {
        if (d > 0) out += ',';
        if (all[t][d].empty()) out += '1';
        for (const int f : all[t][d]) out += name(f);
      }
      out += ']';
    }
    return out + ")";
  };
  std::string sizes;
  std::string reduced;
  std::string whole;
  for (int f = 0; f < static_cast<int>(rule.factors.size()); ++f) {
    sizes += (f > 0 ? ", " : "") + name(f) + "=" + std::to_string(rule.factors[f].size);
    std::string& kind = rule.factors[f].kind == FactorKind::reduction ? reduced : whole;
    if (rule.factors[f].kind != FactorKind::pass) kind += (kind.empty() ? "" : ",") + name(f);
  }
  std::string out = tensors(rule.operands) + "->" + tensors(rule.outputs) + " {" + sizes + "}";
  if (!reduced.empty()) out += " reduction={" + reduced + "}";
  if (!whole.empty()) out += " replication={" + whole + "}";
  return out;
}

}  // namespace plait::graph
