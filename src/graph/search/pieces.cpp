#include "graph/search/pieces.h"

#include <map>
#include <set>

#include "graph/hlo/attributes.h"
#include "graph/search/placement/route.h"
#include "graph/search/uses.h"

namespace plait::graph {
namespace {

class PieceBuilder {
 public:
  PieceBuilder(const Analysis& analysis, const Mesh& mesh, int block, const Strategy& strategy,
               const ClassAxes& axes)
      : program_(analysis.program),
        analysis_(analysis),
        mesh_(mesh),
        block_(block),
        strategy_(strategy),
        axes_(axes),
        is_read_(read_values(analysis.program)) {}

  Piece run() {
    find_inside();
    std::map<double, std::set<std::string>> parts;
    for (const int n : analysis_.blocks.blocks[block_].nodes) {
      const Node& node = program_.nodes[n];
      if (node.kind == NodeKind::argument)
        arguments_[node.outputs.front()] = place_node(analysis_, mesh_, n, axes_).outputs.front();
    }
    for (const int n : analysis_.blocks.blocks[block_].nodes) {
      const Node& node = program_.nodes[n];
      if (node.kind != NodeKind::op || tag_of(n).empty()) continue;
      parts[program_.trips_of_loop(node.loop)].insert(tag_of(n));
      const NodePlacement at = place_node(analysis_, mesh_, n, axes_);
      for (int o = 0; o < static_cast<int>(node.outputs.size()); ++o) add_output(n, o, at);
      for (int i = 0; i < static_cast<int>(node.operands.size()); ++i) add_operand(n, i, at);
    }
    for (const auto& [trips, tags] : parts)
      piece_.parts.push_back({trips, {tags.begin(), tags.end()}});
    return std::move(piece_);
  }

 private:
  std::string tag_of(int n) const {
    const Node& node = program_.nodes[n];
    return node.kind == NodeKind::argument ? "" : frontend_attribute(*node.source, "plait");
  }

  // Values between the instructions that one op of the traced program became.
  void find_inside() {
    for (const int n : analysis_.blocks.blocks[block_].nodes)
      for (const int value : program_.nodes[n].operands)
        if (!tag_of(n).empty() && tag_of(program_.values[value].node) == tag_of(n))
          inside_.insert(value);
  }

  std::vector<Placement> steps(int value, const Placement& from, const Placement& to) const {
    std::vector<Placement> made;
    for (const Leg& leg : route(mesh_, size_of(*program_.values[value].shape), from, to))
      made.push_back(leg.after);
    return made;
  }

  void add_output(int n, int o, const NodePlacement& at) {
    const int value = program_.nodes[n].outputs[o];
    kept_[value] = at.outputs[o];
    if (program_.values[value].dims().empty() || inside_.contains(value)) return;
    std::vector<Placement> way{at.produced[o]};
    for (const Placement& step : steps(value, at.produced[o], at.outputs[o])) way.push_back(step);
    for (const auto& [argument, result] : program_.donated) {
      const int replaced = program_.nodes[program_.arguments[argument]].outputs.front();
      if (program_.results[result] != value ||
          !piece_replaces(analysis_, is_read_, value, replaced))
        continue;
      for (const Placement& step : steps(value, at.outputs[o], arguments_.at(replaced)))
        way.push_back(step);
    }
    piece_.pins.values.push_back({tag_of(n), o, false, value, way});
  }

  void add_operand(int n, int i, const NodePlacement& at) {
    const int value = program_.nodes[n].operands[i];
    if (program_.values[value].dims().empty() || inside_.contains(value)) return;
    const auto made = kept_.find(value);
    const bool inside = made != kept_.end();
    const bool brought = piece_brings(analysis_, value, n);
    const Placement from = inside ? made->second : brought ? arguments_.at(value) : at.operands[i];
    if (!inside) piece_.inputs.push_back({tag_of(n), i, value, from});
    auto way = steps(value, from, at.operands[i]);
    if (way.empty()) return;
    const bool again = gathers_again(analysis_, strategy_, value, n);
    if (again) way.insert(way.begin(), from);
    piece_.pins.uses.push_back({tag_of(n), i, -1, value, way, again});
  }

  const Program& program_;
  const Analysis& analysis_;
  const Mesh& mesh_;
  int block_;
  const Strategy& strategy_;
  const ClassAxes& axes_;
  std::vector<char> is_read_;
  std::map<int, Placement> arguments_;
  std::map<int, Placement> kept_;
  std::set<int> inside_;
  Piece piece_;
};

}  // namespace

std::vector<char> read_values(const Program& program) {
  std::vector<char> is_read(program.values.size(), 0);
  for (const Node& node : program.nodes)
    for (const int value : node.operands) is_read[value] = 1;
  return is_read;
}

bool piece_brings(const Analysis& analysis, int value, int node) {
  const Program& program = analysis.program;
  return program.nodes[program.values[value].node].kind == NodeKind::argument &&
         owner_of(analysis, value) == analysis.blocks.of_node[node] &&
         program.entered_loop(value, node) < 0;
}

bool piece_replaces(const Analysis& analysis, const std::vector<char>& is_read, int value,
                    int argument) {
  return is_read[value] == 0 && owner_of(analysis, value) == owner_of(analysis, argument);
}

Piece piece_of(const Analysis& analysis, const Mesh& mesh, const GraphCosts& costs, int block,
               std::size_t strategy) {
  const BlockCosts& of = costs.blocks[block];
  return PieceBuilder(analysis, mesh, block, of.strategies[strategy], of.axes[strategy]).run();
}

}  // namespace plait::graph
