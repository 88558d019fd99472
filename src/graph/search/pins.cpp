#include "graph/search/pins.h"

#include <map>
#include <set>
#include <unordered_map>

#include "graph/block/numbering.h"
#include "graph/hlo/attributes.h"
#include "graph/hlo/write_text.h"
#include "graph/search/placement/route.h"
#include "graph/search/uses.h"

namespace plait::graph {
namespace {

// Values by key, and what was said about each; keys about which two things were said are left out.
template <typename Key, typename What>
class Agreed {
 public:
  void add(const Key& key, int value, const What& what) {
    const auto [it, fresh] = found_.try_emplace(key, value, what);
    if (!fresh && it->second.second != what) differ_.insert(key);
  }
  template <typename Visit>
  void each(const Visit& visit) const {
    for (const auto& [key, entry] : found_)
      if (!differ_.contains(key)) visit(key, entry.first, entry.second);
  }

 private:
  std::map<Key, std::pair<int, What>> found_;
  std::set<Key> differ_;
};

// Tag, position, and the region that it is of; -1 = of the op itself.
using Key = std::tuple<std::string, int, int>;
constexpr int kBody = 1;  // of a loop; 0 is its condition
using Route = std::vector<Placement>;

// A use; equal where what is to be done is, whatever the values are.
struct SameWay {
  PinnedUse use;
  friend bool operator==(const SameWay& a, const SameWay& b) {
    return a.use.route == b.use.route && a.use.again == b.use.again &&
           a.use.permutation == b.use.permutation;
  }
};

class Pinner {
 public:
  Pinner(const Analysis& analysis, const GraphCosts& costs, const ShardingPlan& plan)
      : program_(analysis.program),
        analysis_(analysis),
        costs_(costs),
        plan_(plan),
        choice_(choice_of(costs, plan)),
        users_(program_.users()) {
    for (const Node& node : program_.nodes)
      tags_.push_back(node.kind == NodeKind::argument ? ""
                                                      : frontend_attribute(*node.source, "plait"));
  }

  Pins run() {
    for (int n = 0; n < static_cast<int>(program_.nodes.size()); ++n) {
      if (tags_[n].empty()) continue;
      const int b = analysis_.blocks.of_node[n];
      NodePlacement at;
      if (b >= 0) at = place_node(analysis_, plan_.mesh, n, costs_.blocks[b].axes[choice_[b]]);
      at.operands.resize(program_.nodes[n].operands.size());
      pin_outputs(n, at);
      pin_operands(n, at);
    }
    Pins pins;
    values_.each([&](const Key& key, int value, const Route& route) {
      pins.values.push_back(
          {std::get<0>(key), std::get<1>(key), std::get<2>(key) >= 0, value, route});
    });
    uses_.each([&](const Key&, int, const SameWay& way) { pins.uses.push_back(way.use); });
    return pins;
  }

 private:
  // What enters and leaves a loop is pinned as well: else what uses it would decide what is
  // carried.
  void pin_outputs(int n, const NodePlacement& at) {
    const Node& node = program_.nodes[n];
    const bool enters = node.kind == NodeKind::loop_enter;
    const bool loop = enters || node.kind == NodeKind::loop_exit;
    const bool leaf = loop || node.kind == NodeKind::join;
    if (node.kind != NodeKind::op && !leaf) return;
    for (int o = 0; o < static_cast<int>(node.outputs.size()); ++o) {
      const int value = node.outputs[o];
      // Of one op of the traced program, or wherever it is wanted.
      bool inside = program_.values[value].dims().empty() || is_made_anywhere(program_, value);
      for (const int user : users_[value]) inside = inside || (!leaf && tags_[user] == tags_[n]);
      if (inside) continue;
      Route steps{at.produced.empty() ? plan_.placements[value] : at.produced[o]};
      for (const Leg& leg : route(plan_.mesh, size_of(*program_.values[value].shape), steps.front(),
                                  plan_.placements[value]))
        steps.push_back(leg.after);
      values_.add({tags_[n], leaf ? node.argument : o, enters ? kBody : -1}, value, steps);
    }
  }

  void pin_operands(int n, const NodePlacement& at) {
    const Node& node = program_.nodes[n];
    if (node.kind == NodeKind::loop_exit) return;
    for (int i = 0; i < static_cast<int>(at.operands.size()); ++i) {
      const int value = node.operands[i];
      const bool loop = node.kind == NodeKind::loop_enter;
      const bool join = node.kind == NodeKind::join;
      const bool inside = !loop && !join && tags_[program_.values[value].node] == tags_[n];
      if (program_.values[value].dims().empty() || inside || is_made_anywhere(program_, value))
        continue;
      PinnedUse use{.tag = tags_[n],
                    .operand = loop || join ? node.argument : i,
                    .region = join            ? i
                              : loop && i > 0 ? kBody
                                              : -1,
                    .value = value};
      const int owner = owner_of(analysis_, value);
      use.again = owner >= 0 && gathers_again(analysis_, plan_.strategies[owner], value, n);
      const Placement to =
          program_.barrier(n, i) < 0 ? instead(use, at.operands[i]) : at.operands[i];
      const int moved = use.moved < 0 ? value : use.moved;
      for (const Leg& leg :
           route(plan_.mesh, size_of(*program_.values[value].shape), plan_.placements[moved], to))
        use.route.push_back(leg.after);
      if (use.route.empty()) continue;
      if (use.again) use.route.insert(use.route.begin(), plan_.placements[value]);
      uses_.add({use.tag, use.operand, use.region}, value, {use});
    }
  }

  // Says what is moved in the place of an operand, which in the traced program may stand behind ops
  // that change nothing (a transpose of a transpose, padding by nothing); gives where to.
  Placement instead(PinnedUse& use, const Placement& to) const {
    const auto at = [&](int v) { return plan_.placements[v]; };
    // What is moved again is moved as it is.
    const auto [moved, end] =
        use.again ? std::pair(use.value, to) : untransposed(analysis_, use.value, to, at);
    const int maker = program_.values[moved].node;
    const NodeKind kind = program_.nodes[maker].kind;
    if (kind != NodeKind::argument && (kind != NodeKind::op || tags_[maker].empty())) return to;
    use.moved = moved;
    for (std::size_t d = 0; d < program_.values[use.value].dims().size(); ++d)
      use.permutation.push_back(static_cast<std::int64_t>(d));
    for (int value = use.value; value != moved;) {
      const Node& node = program_.nodes[program_.values[value].node];
      const std::vector<std::int64_t> dims = integers(*node.source, "dimensions");
      for (std::int64_t& d : use.permutation) d = dims[d];
      value = node.operands.front();
    }
    return end;
  }

  const Program& program_;
  const Analysis& analysis_;
  const GraphCosts& costs_;
  const ShardingPlan& plan_;
  std::vector<int> choice_;
  std::vector<std::vector<int>> users_;
  std::vector<std::string> tags_;
  Agreed<Key, Route> values_;
  Agreed<Key, SameWay> uses_;
};

}  // namespace

Pins pins_of(const Analysis& analysis, const GraphCosts& costs, const ShardingPlan& plan) {
  return Pinner(analysis, costs, plan).run();
}

std::vector<PlacedResult> placed_results(const Analysis& analysis, const ShardingPlan& plan) {
  const Program& program = analysis.program;
  std::vector<PlacedResult> made;
  for (const int value : program.results) made.push_back({plan.placements[value], {}});
  for (const auto& [argument, result] : program.donated) {
    PlacedResult& placed = made[result];
    const Bytes size = size_of(*program.values[program.results[result]].shape);
    const Placement from = placed.at;
    placed.at = plan.placements[program.nodes[program.arguments[argument]].outputs.front()];
    for (const Leg& leg : route(plan.mesh, size, from, placed.at))
      placed.route.push_back(leg.after);
  }
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
