// Where the values of a program are under a choice of strategies, and what is sent.

#include <set>
#include <tuple>

#include "graph/block/numbering.h"
#include "graph/search/costs.h"
#include "graph/search/route.h"

namespace plait::graph {

std::vector<Placement> placements_of(const Analysis& analysis, const Mesh& mesh,
                                     const GraphCosts& costs, const std::vector<int>& choice) {
  std::vector<Placement> made(analysis.program.values.size());
  for (int n = 0; n < static_cast<int>(analysis.program.nodes.size()); ++n) {
    const int b = analysis.blocks.of_node[n];
    const Node& node = analysis.program.nodes[n];
    if (b < 0) {
      for (const int value : node.outputs) made[value] = costs.outside(value);
      continue;
    }
    const NodePlacement at = place_node(analysis, mesh, n, costs.blocks[b].axes[choice[b]]);
    for (std::size_t o = 0; o < node.outputs.size(); ++o) made[node.outputs[o]] = at.outputs[o];
  }
  return made;
}

std::vector<Movement> movements_of(const Analysis& analysis, const Mesh& mesh,
                                   const GraphCosts& costs, const std::vector<int>& choice) {
  const Program& program = analysis.program;
  const std::vector<Placement> placed = placements_of(analysis, mesh, costs, choice);
  std::vector<Movement> all;
  // Each step of a value is done once, and once more before each loop that wants its end.
  std::set<std::tuple<int, int, std::vector<Placement>>> met;
  const auto move = [&](int value, const Placement& to, int consumer) {
    if (program.values[value].dims().empty() || is_made_anywhere(program, value)) return;
    std::vector<Placement> steps;
    const double times = program.trips(program.values[value].node);
    const int loop = program.entered_loop(value, consumer);
    for (const Leg& leg : route(mesh, size_of(*program.values[value].shape), placed[value], to)) {
      steps.push_back(leg.after);
      if (leg.transfer && met.emplace(value, loop, steps).second)
        all.push_back({*leg.transfer, value, consumer, times, leg.after});
    }
  };
  for (int n = 0; n < static_cast<int>(program.nodes.size()); ++n) {
    const int b = analysis.blocks.of_node[n];
    const Node& node = program.nodes[n];
    NodePlacement at;  // of no block: everything whole
    if (b >= 0) at = place_node(analysis, mesh, n, costs.blocks[b].axes[choice[b]]);
    at.operands.resize(node.operands.size());
    for (std::size_t r = 0; r < at.reductions.size(); ++r) {
      const int value = node.outputs[at.reduction_output[r]];
      if (program.values[value].dims().empty()) continue;
      all.push_back({at.reductions[r], value, -1, program.trips(n), placed[value]});
    }
    for (std::size_t i = 0; i < node.operands.size(); ++i)
      move(node.operands[i], at.operands[i], n);
  }
  for (const auto& [argument, result] : program.donated) {
    const int node = program.arguments[argument];
    move(program.results[result], placed[program.nodes[node].outputs.front()], node);
  }
  return all;
}

}  // namespace plait::graph
