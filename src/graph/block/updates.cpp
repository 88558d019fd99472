#include "graph/block/updates.h"

#include <algorithm>
#include <array>

#include "graph/block/numbering.h"
#include "graph/factor/rule.h"

namespace plait::graph {
namespace {

bool is_candidate(const Program& program, const Phases& phases, int n) {
  const Node& node = program.nodes[n];
  if (node.kind == NodeKind::argument)
    return is_floating(program.values[node.outputs.front()].shape->type);
  return phases.of_node[n] != Phase::forward && node.kind != NodeKind::join;
}

// Gives its operand, or a part of it, in another shape, order or type. A broadcast makes more of
// it.
bool hands_on(const Program& program, const Node& node) {
  constexpr std::array<std::string_view, 7> kOps{"bitcast", "convert", "dynamic-slice", "reshape",
                                                 "reverse", "slice",   "transpose"};
  if (node.kind != NodeKind::op || node.outputs.size() != 1) return false;
  return is_view(program, node) || std::ranges::find(kOps, node.source->opcode) != kOps.end();
}

std::vector<char> find_weights(const Program& program, const Phases& phases,
                               const Updates& updates) {
  std::vector<char> made(program.nodes.size(), 0);
  for (const auto& [argument, result] : program.donated) {
    const int node = program.arguments[argument];
    const Value& value = program.values[program.nodes[node].outputs.front()];
    const bool weight = phases.trained[argument] != 0 && updates.is_state[argument] == 0;
    if (weight && is_floating(value.shape->type) && !value.dims().empty()) made[node] = 1;
  }
  for (std::size_t n = 0; n < program.nodes.size(); ++n) {
    const Node& node = program.nodes[n];
    if (hands_on(program, node)) made[n] = made[program.values[node.operands.front()].node];
  }
  return made;
}

}  // namespace

Updates find_updates(const Program& program, const Phases& phases) {
  const int count = static_cast<int>(program.nodes.size());
  Updates made;
  made.of_node.resize(count);
  for (int n = 0; n < count; ++n) made.of_node[n] = is_candidate(program, phases, n) ? 1 : 0;
  // A result that takes no argument's place is for the user, who wants it where it is made.
  std::vector<char> replaces(program.results.size(), 0);
  for (const auto& [argument, result] : program.donated) replaces[result] = 1;
  for (std::size_t r = 0; r < program.results.size(); ++r) {
    const Value& value = program.values[program.results[r]];
    if (replaces[r] == 0 && !value.dims().empty()) made.of_node[value.node] = 0;
  }
  // What anything else uses is not of them; a product wants all of its operands.
  const auto users = program.users();
  std::vector<int> open;
  for (int n = 0; n < count; ++n)
    if (made.of_node[n] == 0 || is_contraction(program, program.nodes[n])) open.push_back(n);
  while (!open.empty()) {
    const int n = open.back();
    open.pop_back();
    for (const int value : program.nodes[n].operands) {
      const int maker = program.values[value].node;
      if (made.of_node[maker] == 0) continue;
      made.of_node[maker] = 0;
      if (!is_contraction(program, program.nodes[maker])) open.push_back(maker);
    }
  }
  made.is_state.assign(program.arguments.size(), 0);
  for (std::size_t a = 0; a < program.arguments.size(); ++a) {
    const int n = program.arguments[a];
    const int value = program.nodes[n].outputs.front();
    const bool read = !users[value].empty() && !program.values[value].dims().empty();
    made.is_state[a] = made.of_node[n] != 0 && read ? 1 : 0;
  }
  made.of_weight = find_weights(program, phases, made);
  return made;
}

}  // namespace plait::graph
