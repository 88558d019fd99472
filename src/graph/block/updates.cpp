#include "graph/block/updates.h"

#include "graph/factor/rule.h"

namespace plait::graph {
namespace {

bool is_candidate(const Program& program, const Phases& phases, int n) {
  const Node& node = program.nodes[n];
  if (node.kind == NodeKind::argument)
    return is_floating(program.values[node.outputs.front()].shape->type);
  return phases.of_node[n] != Phase::forward && node.kind != NodeKind::join;
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
  return made;
}

}  // namespace plait::graph
