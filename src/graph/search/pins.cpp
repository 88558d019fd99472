#include "graph/search/pins.h"

#include <map>
#include <set>
#include <unordered_map>

#include "graph/hlo/attributes.h"
#include "graph/hlo/write_text.h"

namespace plait::graph {
namespace {

template <typename Key>
class Agreed {
 public:
  void add(const Key& key, int value, const Placement& placement) {
    const auto [it, fresh] = found_.try_emplace(key, value, placement);
    if (!fresh && it->second.second != placement) differ_.insert(key);
  }
  template <typename Visit>
  void each(const Visit& visit) const {
    for (const auto& [key, entry] : found_)
      if (!differ_.contains(key)) visit(key, entry.first, entry.second);
  }

 private:
  std::map<Key, std::pair<int, Placement>> found_;
  std::set<Key> differ_;
};

}  // namespace

Pins pins_of(const Analysis& analysis, const GraphCosts& costs, const ShardingPlan& plan) {
  const Program& program = analysis.program;
  const std::vector<int> choice = choice_of(costs, plan);
  const auto users = program.users();
  std::vector<std::string> tags;
  for (const Node& node : program.nodes)
    tags.push_back(node.kind == NodeKind::argument ? ""
                                                   : frontend_attribute(*node.source, "plait"));
  using Key = std::pair<std::string, int>;
  Agreed<Key> values;
  Agreed<Key> uses;
  for (int n = 0; n < static_cast<int>(program.nodes.size()); ++n) {
    const Node& node = program.nodes[n];
    const int b = analysis.blocks.of_node[n];
    if (b < 0 || tags[n].empty()) continue;
    // What leaves a loop is pinned as well: else what follows it would decide what it carries.
    const bool pinned = node.kind == NodeKind::op || node.kind == NodeKind::loop_exit;
    for (int o = 0; pinned && o < static_cast<int>(node.outputs.size()); ++o) {
      const int value = node.outputs[o];
      bool inside = program.values[value].dims().empty();  // of one op of the traced program
      for (const int user : users[value]) inside = inside || tags[user] == tags[n];
      const int result = node.kind == NodeKind::loop_exit ? node.argument : o;
      if (!inside) values.add({tags[n], result}, value, plan.placements[value]);
    }
    const NodePlacement at = place_node(analysis, plan.mesh, n, costs.blocks[b].axes[choice[b]]);
    for (int i = 0; i < static_cast<int>(node.operands.size()); ++i) {
      const int value = node.operands[i];
      const int maker = program.values[value].node;
      const bool back = node.kind == NodeKind::loop_enter && i > 0;
      if (program.values[value].dims().empty() || back || tags[maker] == tags[n]) continue;
      if (node.kind == NodeKind::loop_exit || node.kind == NodeKind::join) continue;
      if (at.operands[i] == plan.placements[value]) continue;
      const int position = node.kind == NodeKind::loop_enter ? node.argument : i;
      uses.add({tags[n], position}, value, at.operands[i]);
    }
  }
  Pins pins;
  values.each([&](const Key& key, int value, const Placement& placement) {
    pins.values.push_back({key.first, key.second, value, placement});
  });
  uses.each([&](const Key& key, int value, const Placement& placement) {
    pins.uses.push_back({key.first, key.second, value, placement});
  });
  return pins;
}

std::vector<Placement> result_placements(const Analysis& analysis, const ShardingPlan& plan) {
  const Program& program = analysis.program;
  std::vector<Placement> made;
  for (const int value : program.results) made.push_back(plan.placements[value]);
  for (const auto& [argument, result] : program.donated)
    made[result] = plan.placements[program.nodes[program.arguments[argument]].outputs.front()];
  return made;
}

std::string annotated_hlo(const Analysis& analysis, const ShardingPlan& plan) {
  const Program& program = analysis.program;
  // An instruction that is inlined several times is marked where all agree.
  std::unordered_map<const Instruction*, std::string> marks;
  for (const Node& node : program.nodes) {
    if (node.kind == NodeKind::loop_enter || node.kind == NodeKind::loop_exit ||
        node.kind == NodeKind::join || node.source->shape.is_tuple())
      continue;
    const int value = node.outputs.front();
    const std::string text = gspmd_sharding(plan.mesh, plan.placements[value],
                                            static_cast<int>(program.values[value].dims().size()));
    const auto [it, fresh] = marks.try_emplace(node.source, text);
    if (!fresh && it->second != text) it->second.clear();
  }
  const Module& module = *analysis.module;
  return write_hlo(
      module,
      [&](int c, int i) {
        const auto found = marks.find(&module.computations[c].instructions[i]);
        if (found == marks.end() || found->second.empty()) return std::string();
        return ", sharding=" + found->second;
      },
      true);
}

}  // namespace plait::graph
