#include "graph/search/uses.h"

#include <algorithm>

namespace plait::graph {
namespace {

void add_operands(const Analysis& analysis, Uses& uses) {
  const Program& program = analysis.program;
  for (int n = 0; n < static_cast<int>(program.nodes.size()); ++n) {
    const int block = analysis.blocks.of_node[n];
    if (block < 0) continue;
    for (int i = 0; i < static_cast<int>(program.nodes[n].operands.size()); ++i) {
      const int value = program.nodes[n].operands[i];
      if (program.values[value].dims().empty()) continue;
      const int from = owner_of(analysis, value);
      if (from < 0 || from == block) continue;
      uses.between[{std::min(from, block), std::max(from, block)}].push_back({value, n, i});
      const int maker = program.values[value].node;
      const auto may_be_in_parts = [&](int node) {
        return analysis.updates.of_node[node] != 0 || analysis.updates.of_weight[node] != 0;
      };
      if (may_be_in_parts(n) && !is_contraction(program, program.nodes[n]))
        uses.updates_meet[block] = 1;
      if (may_be_in_parts(maker)) uses.updates_meet[from] = 1;
    }
  }
}

void add_replacements(const Analysis& analysis, Uses& uses) {
  const Program& program = analysis.program;
  for (const auto& [argument, result] : program.donated) {
    const int value = program.results[result];
    const int node = program.arguments[argument];
    const int from = owner_of(analysis, value);
    const int block = analysis.blocks.of_node[node];
    if (from < 0 || program.values[value].dims().empty()) continue;
    if (block < 0 || block == from) {
      uses.replacing[from].emplace_back(value, program.nodes[node].outputs.front());
    } else {
      uses.between[{std::min(from, block), std::max(from, block)}].push_back({value, node, -1});
      uses.updates_meet[from] = uses.updates_meet[block] = 1;
    }
  }
}

}  // namespace

std::optional<Placement> before_transpose(const Analysis& analysis, int value,
                                          const Placement& to) {
  const int n = analysis.program.values[value].node;
  if (analysis.transposes[n] == 0) return std::nullopt;
  const TensorFactors& result = analysis.rules[n].outputs.front();
  const TensorFactors& operand = analysis.rules[n].operands.front();
  Placement made = to;
  for (std::int8_t& dim : made.dim)
    if (dim >= 0)
      dim = static_cast<std::int8_t>(std::ranges::find(operand, result[dim]) - operand.begin());
  return made;
}

Uses find_uses(const Analysis& analysis) {
  Uses uses;
  uses.updates_meet.resize(analysis.blocks.blocks.size());
  uses.replacing.resize(analysis.blocks.blocks.size());
  add_operands(analysis, uses);
  add_replacements(analysis, uses);
  uses.first_operand.resize(analysis.program.nodes.size());
  uses.first_output.resize(analysis.program.nodes.size());
  for (const Block& block : analysis.blocks.blocks) {
    int operands = 0;
    int outputs = 0;
    for (const int n : block.nodes) {
      uses.first_operand[n] = operands;
      uses.first_output[n] = outputs;
      operands += static_cast<int>(analysis.program.nodes[n].operands.size());
      outputs += static_cast<int>(analysis.program.nodes[n].outputs.size());
    }
  }
  return uses;
}

}  // namespace plait::graph
