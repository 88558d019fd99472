#include "graph/hlo/drop_unused.h"

namespace plait::graph {

void drop_unused(Program& program) {
  std::vector<char> live(program.nodes.size(), 0);
  std::vector<int> open;
  const auto mark = [&](int value) {
    const int node = program.values[value].node;
    if (live[node] != 0) return;
    live[node] = 1;
    open.push_back(node);
  };
  for (const int result : program.results) mark(result);
  for (const int argument : program.arguments) live[argument] = 1;
  while (!open.empty()) {
    const int node = open.back();
    open.pop_back();
    for (const int operand : program.nodes[node].operands) mark(operand);
  }
  std::vector<int> place(program.nodes.size(), -1);
  std::vector<Node> kept;
  for (std::size_t i = 0; i < program.nodes.size(); ++i) {
    if (live[i] == 0) continue;
    place[i] = static_cast<int>(kept.size());
    kept.push_back(std::move(program.nodes[i]));
  }
  program.nodes = std::move(kept);
  std::vector<int> value_place(program.values.size(), -1);
  std::vector<Value> values;
  for (std::size_t v = 0; v < program.values.size(); ++v) {
    Value value = program.values[v];
    if (place[value.node] < 0) continue;
    value.node = place[value.node];
    value_place[v] = static_cast<int>(values.size());
    values.push_back(value);
  }
  program.values = std::move(values);
  for (Node& node : program.nodes) {
    for (int& operand : node.operands) operand = value_place[operand];
    for (int& output : node.outputs) output = value_place[output];
  }
  for (int& argument : program.arguments) argument = place[argument];
  for (int& result : program.results) result = value_place[result];
}

}  // namespace plait::graph
