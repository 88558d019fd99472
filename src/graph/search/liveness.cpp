#include "graph/search/liveness.h"

#include <algorithm>

#include "graph/search/costs.h"

namespace plait::graph {
namespace {

bool makes_nothing(const Program& program, const Node& node) {
  // Fused into what uses them, or an alias of their operand.
  return node.is("broadcast") || node.is("iota") || node.is("constant") || node.is("reshape") ||
         node.is("bitcast") || node.is("convert") || node.kind == NodeKind::loop_exit ||
         (node.kind == NodeKind::op && program.values[node.outputs.front()].dims().empty());
}

}  // namespace

std::vector<char> kept_until_backward(const Analysis& analysis) {
  const Program& program = analysis.program;
  std::vector<char> kept(program.values.size(), 0);
  const auto is_forward = [&](int n) { return analysis.phases.of_node[n] == Phase::forward; };
  for (int n = 0; n < static_cast<int>(program.nodes.size()); ++n) {
    const Node& node = program.nodes[n];
    if (node.kind == NodeKind::argument)
      for (const int value : node.outputs) kept[value] = 1;
    if (is_forward(n)) continue;
    for (const int value : node.operands) {
      const int maker = program.values[value].node;
      const Node& from = program.nodes[maker];
      if (is_forward(maker) && from.loop < 0 && !makes_nothing(program, from)) kept[value] = 1;
      if (from.kind == NodeKind::loop_exit && is_forward(maker)) kept[value] = 1;
    }
  }
  return kept;
}

std::vector<int> last_uses(const Analysis& analysis) {
  const Program& program = analysis.program;
  const int end = static_cast<int>(program.nodes.size());
  std::vector<int> last(program.values.size(), -1);
  for (int n = 0; n < end; ++n)
    for (const int value : program.nodes[n].operands) last[value] = std::max(last[value], n);
  for (const int value : program.results) last[value] = end;
  // An alias keeps what it is an alias of.
  for (int n = end - 1; n >= 0; --n) {
    const Node& node = program.nodes[n];
    const bool alias = node.is("reshape") || node.is("bitcast") ||
                       node.kind == NodeKind::loop_exit || node.kind == NodeKind::loop_enter;
    if (!alias) continue;
    for (const int value : node.operands)
      last[value] = std::max(last[value], last[node.outputs.front()]);
  }
  return last;
}

Bytes peak_memory(const Analysis& analysis, const Mesh& mesh,
                  const std::vector<Placement>& placements, const std::vector<Copy>& copies) {
  const Program& program = analysis.program;
  const int end = static_cast<int>(program.nodes.size());
  std::vector<int> last = last_uses(analysis);
  std::vector<char> replaced(program.values.size(), 0);  // results that take an argument's memory
  std::vector<char> given(program.arguments.size(), 0);
  for (const auto& [argument, result] : program.donated) {
    replaced[program.results[result]] = 1;
    given[argument] = 1;
  }
  const auto bytes = [&](int value) {
    return size_of(*program.values[value].shape) / mesh.size_of(placements[value].axes());
  };
  std::vector<std::vector<int>> dies(end + 1);
  std::vector<Bytes> comes(end + 1);
  std::vector<Bytes> goes(end + 1);
  for (const Copy& copy : copies) {
    const Bytes size = size_of(*program.values[copy.value].shape) / mesh.size_of(copy.at.axes());
    comes[copy.first] += size;
    goes[copy.last] += size;
  }
  Bytes held;
  for (const int node : program.arguments) held += bytes(program.nodes[node].outputs.front());
  Bytes most = held;
  for (int n = 0; n < end; ++n) {
    const Node& node = program.nodes[n];
    held += comes[n];
    if (node.kind != NodeKind::argument) {
      for (const int value : node.outputs) {
        if (makes_nothing(program, node) || replaced[value] != 0) continue;
        held += bytes(value);
        if (last[value] < end) dies[std::max(last[value], n)].push_back(value);
      }
    }
    most = std::max(most, held);
    for (const int value : dies[n]) held -= bytes(value);
    held -= goes[n];
  }
  return most;
}

}  // namespace plait::graph
