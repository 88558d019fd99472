#include "graph/factor/rule_builder.h"

#include <algorithm>

#include "base/error.h"

namespace plait::graph {

RuleBuilder::RuleBuilder(const Program& program, const Node& node)
    : program_(program), node_(node) {
  for (const int value : node.operands)
    rule_.operands.emplace_back(program.values[value].dims().size());
  for (const int value : node.outputs)
    rule_.outputs.emplace_back(program.values[value].dims().size());
}

const std::vector<std::int64_t>& RuleBuilder::operand(int i) const {
  return program_.values[node_.operands[i]].dims();
}

const std::vector<std::int64_t>& RuleBuilder::output(int i) const {
  return program_.values[node_.outputs[i]].dims();
}

const std::string& RuleBuilder::combining_op() const {
  static const std::string none;
  for (const Called& called : source().called) {
    if (called.role != "to_apply") continue;
    const Computation& computation = program_.module->computations[called.computation];
    const Instruction* root = &computation.instructions[computation.root];
    while (root->opcode == "convert") root = &computation.instructions[root->operands.front()];
    return root->opcode;
  }
  return none;
}

int RuleBuilder::factor(std::int64_t size, FactorKind kind) {
  if (size == 1) return -1;
  rule_.factors.push_back({size, kind});
  return static_cast<int>(rule_.factors.size()) - 1;
}

void RuleBuilder::bind_operand(int i, std::int64_t dim, int factor) {
  need(i < operand_count() && dim >= 0 && dim < rank(i), "a dimension is not one of its operands'");
  if (factor >= 0) rule_.operands[i][dim].push_back(factor);
}

void RuleBuilder::bind_output(int i, std::int64_t dim, int factor) {
  need(i < output_count() && dim >= 0 && dim < output_rank(i),
       "a dimension is not one of its result's");
  if (factor >= 0) rule_.outputs[i][dim].push_back(factor);
}

void RuleBuilder::pass(int operand_index, std::int64_t dim, int output_index,
                       std::int64_t output_dim) {
  need(operand_index < operand_count() && dim >= 0 && dim < rank(operand_index),
       "a dimension is not one of its operands'");
  const int made = factor(operand(operand_index)[dim]);
  bind_operand(operand_index, dim, made);
  bind_output(output_index, output_dim, made);
}

void RuleBuilder::halo(const Halo& halo) {
  if (halo.before > 0 || halo.behind > 0)
    rule_.halos.push_back({halo.operand, halo.dim, std::max<std::int64_t>(halo.before, 0),
                           std::max<std::int64_t>(halo.behind, 0)});
}

void RuleBuilder::need_operands(int count) const {
  need(operand_count() == count, "it must have " + std::to_string(count) + " operands, not " +
                                     std::to_string(operand_count()));
}

void RuleBuilder::need_outputs(int count) const {
  need(output_count() == count,
       "it must have " + std::to_string(count) + " results, not " + std::to_string(output_count()));
}

void RuleBuilder::contradicts(const std::string& what) const {
  throw InputError(
      program_.module->place(*node_.source),
      "the shape of " + node_.source->name + " contradicts " + node_.source->opcode + ": " + what);
}

void RuleBuilder::close(TensorFactors& tensor, const std::vector<std::int64_t>& dims) {
  for (std::size_t d = 0; d < tensor.size(); ++d) {
    if (tensor[d].empty()) {
      const int made = factor(dims[d], FactorKind::replication);
      if (made >= 0) tensor[d].push_back(made);
      continue;
    }
    std::int64_t product = 1;
    for (const int f : tensor[d]) product *= rule_.factors[f].size;
    need(product == dims[d], "dimension " + std::to_string(d) + " is " + std::to_string(dims[d]) +
                                 ", and must be " + std::to_string(product));
  }
}

Rule RuleBuilder::finish() {
  for (int i = 0; i < operand_count(); ++i) close(rule_.operands[i], operand(i));
  for (int i = 0; i < output_count(); ++i) close(rule_.outputs[i], output(i));
  return std::move(rule_);
}

}  // namespace plait::graph
