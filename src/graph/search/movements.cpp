// Where the values of a program are under a choice of strategies, and what is sent.

#include <map>
#include <set>
#include <tuple>

#include "graph/block/numbering.h"
#include "graph/search/costs.h"
#include "graph/search/placement/route.h"
#include "graph/search/uses.h"

namespace plait::graph {
namespace {

bool again_for(const Analysis& analysis, const GraphCosts& costs, const std::vector<int>& choice,
               int value, int node) {
  const int b = owner_of(analysis, value);
  return b >= 0 && gathers_again(analysis, costs.blocks[b].strategies[choice[b]], value, node);
}

// Of every node; those of no block want and make everything whole.
std::vector<NodePlacement> place_all(const Analysis& analysis, const Mesh& mesh,
                                     const GraphCosts& costs, const std::vector<int>& choice) {
  std::vector<NodePlacement> all(analysis.program.nodes.size());
  for (int n = 0; n < static_cast<int>(all.size()); ++n) {
    const int b = analysis.blocks.of_node[n];
    if (b >= 0) all[n] = place_node(analysis, mesh, n, costs.blocks[b].axes[choice[b]]);
    all[n].operands.resize(analysis.program.nodes[n].operands.size());
  }
  return all;
}

std::vector<Placement> placements_in(const Analysis& analysis, const GraphCosts& costs,
                                     const std::vector<NodePlacement>& nodes) {
  std::vector<Placement> made(analysis.program.values.size());
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const std::vector<int>& outputs = analysis.program.nodes[n].outputs;
    for (std::size_t o = 0; o < outputs.size(); ++o)
      made[outputs[o]] =
          analysis.blocks.of_node[n] < 0 ? costs.outside(outputs[o]) : nodes[n].outputs[o];
  }
  return made;
}

}  // namespace

bool gathers_again(const Analysis& analysis, const Strategy& of_maker, int value, int node) {
  return of_maker.sharing == Sharing::weights &&
         analysis.updates.of_weight[analysis.program.values[value].node] != 0 &&
         analysis.phases.of_node[node] != Phase::forward;
}

std::vector<Copy> copies_of(const Analysis& analysis, const Mesh& mesh, const GraphCosts& costs,
                            const std::vector<int>& choice,
                            const std::vector<Placement>& placements) {
  const Program& program = analysis.program;
  std::map<std::tuple<int, int, int, bool, Placement>, std::size_t> known;
  std::vector<Copy> all;
  for (int n = 0; n < static_cast<int>(program.nodes.size()); ++n) {
    const int b = analysis.blocks.of_node[n];
    const Node& node = program.nodes[n];
    NodePlacement at;
    if (b >= 0) at = place_node(analysis, mesh, n, costs.blocks[b].axes[choice[b]]);
    at.operands.resize(node.operands.size());
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const int value = node.operands[i];
      // What an op before made, or a loop hands on; a part of what is here needs no copy.
      if (placements[value] == at.operands[i] || program.values[value].node >= n ||
          is_made_anywhere(program, value))
        continue;
      if (transfers(mesh, Bytes(1), placements[value], at.operands[i]).empty()) continue;
      const bool again = again_for(analysis, costs, choice, value, n);
      const auto [it, fresh] =
          known.try_emplace({value, program.barrier(n, static_cast<int>(i)),
                             again ? program.entered_loop(value, n) : -1, again, at.operands[i]},
                            all.size());
      if (fresh) all.push_back({value, at.operands[i], n, n});
      all[it->second].last = n;
    }
  }
  return all;
}

std::vector<Placement> placements_of(const Analysis& analysis, const Mesh& mesh,
                                     const GraphCosts& costs, const std::vector<int>& choice) {
  return placements_in(analysis, costs, place_all(analysis, mesh, costs, choice));
}

std::vector<Movement> movements_of(const Analysis& analysis, const Mesh& mesh,
                                   const GraphCosts& costs, const std::vector<int>& choice) {
  const Program& program = analysis.program;
  const std::vector<NodePlacement> nodes = place_all(analysis, mesh, costs, choice);
  const std::vector<Placement> placed = placements_in(analysis, costs, nodes);
  std::vector<Movement> all;
  // Each step of a value is done once, once more behind each barrier, and, of what is moved again,
  // once more before each loop.
  std::set<std::tuple<int, int, int, bool, std::vector<Placement>>> met;
  std::set<std::tuple<int, Placement, std::string>> windows;
  const auto kept = [&](int value) { return placed[value]; };
  const auto move = [&](int value, Placement to, int consumer, int operand) {
    if (placed[value] == to || program.values[value].dims().empty() ||
        is_made_anywhere(program, value))
      return;
    std::vector<Placement> steps;
    const double times = program.trips(program.values[value].node);
    const int barrier = program.barrier(consumer, operand);
    const bool again = again_for(analysis, costs, choice, value, consumer);
    if (operand >= 0 && barrier < 0 && !again)
      std::tie(value, to) = untransposed(analysis, value, to, kept);
    const int loop = again ? program.entered_loop(value, consumer) : -1;
    for (const Leg& leg : route(mesh, size_of(*program.values[value].shape), placed[value], to)) {
      steps.push_back(leg.after);
      if (leg.transfer && met.emplace(value, barrier, loop, again, steps).second)
        all.push_back({*leg.transfer, value, consumer, times, leg.after});
    }
  };
  for (int n = 0; n < static_cast<int>(program.nodes.size()); ++n) {
    const Node& node = program.nodes[n];
    const NodePlacement& at = nodes[n];
    for (std::size_t r = 0; r < at.reductions.size(); ++r) {
      const int value = node.outputs[at.reduction_output[r]];
      if (program.values[value].dims().empty()) continue;
      all.push_back({at.reductions[r], value, -1, program.trips(n), placed[value]});
    }
    for (std::size_t i = 0; i < node.operands.size(); ++i)
      move(node.operands[i], at.operands[i], n, static_cast<int>(i));
    if (!at.window.empty() &&
        !windows.emplace(node.operands.front(), at.operands.front(), at.window).second)
      continue;
    for (std::size_t h = 0; h < at.halos.size(); ++h) {
      const int operand = at.halo_operand[h];
      all.push_back(
          {at.halos[h], node.operands[operand], n, program.trips(n), at.operands[operand]});
    }
  }
  for (const auto& [argument, result] : program.donated) {
    const int node = program.arguments[argument];
    move(program.results[result], placed[program.nodes[node].outputs.front()], node, -1);
  }
  return all;
}

}  // namespace plait::graph
