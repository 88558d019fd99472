#include "graph/search/costs.h"

#include <algorithm>
#include <map>

#include "base/parallel.h"
#include "graph/block/numbering.h"
#include "graph/search/carried.h"
#include "graph/search/liveness.h"

namespace plait::graph {
namespace {

// One use of a value of another block.
struct Use {
  int value = 0;
  int node = 0;
  int operand = 0;  // -1: the value takes the place of what the node, an argument, gives
};

using Pair = std::pair<int, int>;

// A wish for a value at a placement; each wish is met once.
struct Wish {
  int value = 0;
  Placement to;
  int loop = -1;  // that wants it, where it is made outside
  friend auto operator<=>(const Wish&, const Wish&) = default;
};

// Where a block's operands and outputs are under each strategy, its nodes one after the other.
struct BlockTable {
  std::vector<std::vector<Placement>> operands;
  std::vector<std::vector<Placement>> outputs;
  std::vector<Seconds> replacing;  // bringing new values where the arguments are that they replace
};

// Blocks that are the same but for which layer they belong to are evaluated once, and so are pairs
// of them.
class CostBuilder {
 public:
  CostBuilder(const Analysis& analysis, const Mesh& mesh, const CostOptions& options)
      : analysis_(analysis), mesh_(mesh), options_(options) {
    if (options.keep) made_.kept = kept_shardings(analysis.program, mesh);
    find_uses();
    number_places();
  }

  GraphCosts build() {
    const int count = static_cast<int>(analysis_.blocks.blocks.size());
    made_.whole = options_.whole;
    made_.blocks.resize(count);
    tables_.resize(count);
    kept_ = kept_until_backward(analysis_);
    std::map<std::uint64_t, int> known;
    std::vector<int> firsts;
    for (int b = 0; b < count; ++b) {
      const std::uint64_t signature = signature_of(b);
      made_.blocks[b].signature = std::to_string(signature);
      first_like_.push_back(known.try_emplace(signature, b).first->second);
      if (first_like_[b] == b) firsts.push_back(b);
    }
    parallel_for(static_cast<int>(firsts.size()), options_.threads,
                 [&](int i) { build_block(firsts[i]); });
    for (int b = 0; b < count; ++b) {
      if (first_like_[b] == b) continue;
      made_.blocks[b] = made_.blocks[first_like_[b]];
      rename_classes(b);
    }
    build_edges();
    add_shared();
    return std::move(made_);
  }

 private:
  int owner(int value) const {
    return analysis_.blocks.of_node[analysis_.program.values[value].node];
  }
  int place(int value) const {
    const Value& v = analysis_.program.values[value];
    return first_output_[v.node] + v.output;
  }

  void find_uses() {
    const Program& program = analysis_.program;
    updates_meet_.resize(analysis_.blocks.blocks.size());
    for (int n = 0; n < static_cast<int>(program.nodes.size()); ++n) {
      const int block = analysis_.blocks.of_node[n];
      if (block < 0) continue;
      for (int i = 0; i < static_cast<int>(program.nodes[n].operands.size()); ++i) {
        const int value = program.nodes[n].operands[i];
        if (program.values[value].dims().empty()) continue;
        const int from = owner(value);
        if (from < 0 || from == block) continue;
        uses_[{std::min(from, block), std::max(from, block)}].push_back({value, n, i});
        const bool wants_parts =
            analysis_.updates.of_node[n] != 0 && !is_contraction(program, program.nodes[n]);
        if (wants_parts) updates_meet_[block] = 1;
        if (analysis_.updates.of_node[program.values[value].node] != 0) updates_meet_[from] = 1;
      }
    }
    replacing_.resize(analysis_.blocks.blocks.size());
    for (const auto& [argument, result] : program.donated) {
      const int value = program.results[result];
      const int node = program.arguments[argument];
      const int from = owner(value);
      const int block = analysis_.blocks.of_node[node];
      if (from < 0 || program.values[value].dims().empty()) continue;
      if (block < 0 || block == from) {
        replacing_[from].emplace_back(value, program.nodes[node].outputs.front());
      } else {
        uses_[{std::min(from, block), std::max(from, block)}].push_back({value, node, -1});
        updates_meet_[from] = updates_meet_[block] = 1;
      }
    }
  }

  void number_places() {
    first_operand_.resize(analysis_.program.nodes.size());
    first_output_.resize(analysis_.program.nodes.size());
    for (const Block& block : analysis_.blocks.blocks) {
      int operands = 0;
      int outputs = 0;
      for (const int n : block.nodes) {
        first_operand_[n] = operands;
        first_output_[n] = outputs;
        operands += static_cast<int>(analysis_.program.nodes[n].operands.size());
        outputs += static_cast<int>(analysis_.program.nodes[n].outputs.size());
      }
    }
  }

  // Of everything that the costs of a block depend on. Classes are numbered as they come.
  std::uint64_t signature_of(int b) const {
    const Block& block = analysis_.blocks.blocks[b];
    const Program& program = analysis_.program;
    std::map<int, int> classes;
    std::map<int, int> loops;
    std::uint64_t hash = mixed(hash_of("signature"), updates_meet_[b]);
    const auto add = [&](std::uint64_t word) { hash = mixed(hash, word); };
    const auto add_class = [&](int cls) {
      add(cls < 0 ? ~0ULL
                  : classes.try_emplace(cls, static_cast<int>(classes.size())).first->second);
    };
    const auto add_fixed = [&](int value) {
      if (made_.kept.empty() || !made_.kept[value]) return;
      for (int a = 0; a < mesh_.axes(); ++a)
        add(static_cast<std::uint64_t>(made_.kept[value]->dim[a] * 8 + made_.kept[value]->rank[a]));
    };
    for (const int n : block.nodes) {
      const Node& node = program.nodes[n];
      const Rule& rule = analysis_.rules[n];
      add(static_cast<std::uint64_t>(node.kind));
      add(analysis_.updates.of_node[n]);
      if (node.kind == NodeKind::op) add(hash_of(node.source->opcode));
      add(static_cast<std::uint64_t>(program.trips(n)));
      add(loops.try_emplace(node.loop, static_cast<int>(loops.size())).first->second);
      for (std::size_t f = 0; f < rule.factors.size(); ++f) {
        add(rule.factors[f].size);
        add(static_cast<std::uint64_t>(rule.factors[f].kind));
        add_class(analysis_.blocks.classes[n][f]);
      }
      const auto add_tensor = [&](const TensorFactors& tensor, int value) {
        add(hash_of(program.values[value].shape->type));
        for (const auto& dim : tensor) {
          add(dim.size());
          for (const int f : dim) add(f);
        }
      };
      for (std::size_t i = 0; i < node.operands.size(); ++i) {
        add_tensor(rule.operands[i], node.operands[i]);
        const int from = owner(node.operands[i]);
        add(from == b ? place(node.operands[i]) : from < 0 ? 1ULL << 40 : 1ULL << 41);
        if (from < 0) add_fixed(node.operands[i]);
      }
      for (std::size_t o = 0; o < node.outputs.size(); ++o) {
        add_tensor(rule.outputs[o], node.outputs[o]);
        add(kept_[node.outputs[o]]);
        add_fixed(node.outputs[o]);
      }
    }
    for (const auto& [value, argument] : replacing_[b]) {
      add(place(value));
      add(owner(argument) == b ? place(argument) : 1ULL << 40);
      if (owner(argument) != b) add_fixed(argument);
    }
    for (const Role& role : block.roles) {
      add(hash_of(role.name));
      for (const int cls : role.classes) add_class(cls);
    }
    return hash;
  }

  // The axes of classes are kept by class; this block's classes have other numbers.
  void rename_classes(int b) {
    BlockCosts& costs = made_.blocks[b];
    for (std::size_t s = 0; s < costs.strategies.size(); ++s)
      costs.axes[s] = axes_of(b, costs.strategies[s]);
  }

  ClassAxes axes_of(int b, const Strategy& strategy) const {
    const Block& block = analysis_.blocks.blocks[b];
    ClassAxes axes = class_axes(block, mesh_, strategy);
    if (made_.kept.empty()) return axes;
    for (const int n : block.nodes)
      for (const int value : analysis_.program.nodes[n].outputs)
        if (made_.kept[value]) axes.fixed.emplace_back(value, *made_.kept[value]);
    return axes;
  }

  Seconds move_time(int value, const Placement& from, const Placement& to) const {
    const Program& program = analysis_.program;
    if (from == to || is_made_anywhere(program, value)) return {};
    const Bytes size = size_of(*program.values[value].shape);
    return time_of(mesh_, transfers(mesh_, size, from, to)) *
           program.trips(program.values[value].node);
  }

  void build_block(int b) {
    const Block& block = analysis_.blocks.blocks[b];
    for (Strategy& strategy : strategies_of(block, mesh_, options_.whole)) {
      add_strategy(b, strategy);
      if (copied_axes(analysis_, mesh_, b, strategy) == 0) continue;
      strategy.shares_update = true;
      add_strategy(b, strategy);
      drop_one_of_two(b);
    }
    if (options_.measured != nullptr) take_measured(b);
  }

  void add_strategy(int b, const Strategy& strategy) {
    BlockCosts& costs = made_.blocks[b];
    const std::size_t s = costs.strategies.size();
    costs.strategies.push_back(strategy);
    costs.axes.push_back(axes_of(b, strategy));
    costs.compute.emplace_back();
    costs.communication.emplace_back();
    costs.memory.emplace_back();
    tables_[b].operands.emplace_back();
    tables_[b].outputs.emplace_back();
    tables_[b].replacing.emplace_back();
    build_strategy(b, s);
  }

  // Of the last two, which differ in who does the update, one goes if the other is neither slower
  // nor larger and other blocks cannot tell.
  void drop_one_of_two(int b) {
    BlockCosts& costs = made_.blocks[b];
    const std::size_t last = costs.strategies.size() - 1;
    const auto beats = [&](std::size_t one, std::size_t other) {
      return costs.compute[one] + costs.communication[one] <=
                 costs.compute[other] + costs.communication[other] &&
             costs.memory[one] <= costs.memory[other];
    };
    if (tables_[b].outputs[last] == tables_[b].outputs[last - 1] &&
        tables_[b].operands[last] == tables_[b].operands[last - 1])
      return drop(b, last);  // nothing could be divided
    if (updates_meet_[b] != 0) return;
    if (beats(last - 1, last)) {
      drop(b, last);
    } else if (beats(last, last - 1)) {
      drop(b, last - 1);
    }
  }

  void drop(int b, std::size_t s) {
    const auto at = static_cast<std::ptrdiff_t>(s);
    BlockCosts& costs = made_.blocks[b];
    costs.strategies.erase(costs.strategies.begin() + at);
    costs.axes.erase(costs.axes.begin() + at);
    costs.compute.erase(costs.compute.begin() + at);
    costs.communication.erase(costs.communication.begin() + at);
    costs.memory.erase(costs.memory.begin() + at);
    tables_[b].operands.erase(tables_[b].operands.begin() + at);
    tables_[b].outputs.erase(tables_[b].outputs.begin() + at);
    tables_[b].replacing.erase(tables_[b].replacing.begin() + at);
  }

  void take_measured(int b) {
    const Block& block = analysis_.blocks.blocks[b];
    BlockCosts& costs = made_.blocks[b];
    Seconds by_formula;
    Seconds by_clock;
    std::vector<std::size_t> others;
    for (std::size_t s = 0; s < costs.strategies.size(); ++s) {
      const auto found =
          options_.measured->find({costs.signature, text_of(costs.strategies[s], block, mesh_)});
      if (found == options_.measured->end()) {
        others.push_back(s);
        continue;
      }
      by_formula += costs.compute[s] + costs.communication[s] - tables_[b].replacing[s];
      by_clock += found->second;
      costs.compute[s] = found->second;
      costs.communication[s] = tables_[b].replacing[s];  // what a block alone does not do
    }
    if (!(by_formula > Seconds(0))) return;
    for (const std::size_t s : others) {
      costs.compute[s] = costs.compute[s] * (by_clock / by_formula);
      costs.communication[s] = costs.communication[s] * (by_clock / by_formula);
    }
  }

  void build_strategy(int b, std::size_t s) {
    const Program& program = analysis_.program;
    BlockCosts& costs = made_.blocks[b];
    auto& operands = tables_[b].operands[s];
    auto& outputs = tables_[b].outputs[s];
    std::vector<Wish> wishes;
    for (const int n : analysis_.blocks.blocks[b].nodes) {
      const Node& node = program.nodes[n];
      const NodePlacement at = place_node(analysis_, mesh_, n, costs.axes[s]);
      const double trips = program.trips(n);
      costs.compute[s] += node_time(analysis_, mesh_.device, n) * (at.share * trips);
      costs.communication[s] += time_of(mesh_, at.reductions) * trips;
      operands.insert(operands.end(), at.operands.begin(), at.operands.end());
      outputs.insert(outputs.end(), at.outputs.begin(), at.outputs.end());
      for (std::size_t o = 0; o < node.outputs.size(); ++o)
        if (kept_[node.outputs[o]] != 0)
          costs.memory[s] +=
              size_of(*program.values[node.outputs[o]].shape) / mesh_.size_of(at.outputs[o].axes());
      for (std::size_t i = 0; i < node.operands.size(); ++i)
        if ((owner(node.operands[i]) == b || owner(node.operands[i]) < 0) &&
            !program.values[node.operands[i]].dims().empty())
          wishes.push_back(
              {node.operands[i], at.operands[i], program.entered_loop(node.operands[i], n)});
    }
    for (const auto& [value, argument] : replacing_[b]) {
      const Placement to =
          owner(argument) == b ? outputs[place(argument)] : made_.outside(argument);
      wishes.push_back({value, to, -1});
      tables_[b].replacing[s] += move_time(value, outputs[place(value)], to);
    }
    std::ranges::sort(wishes);
    wishes.erase(std::unique(wishes.begin(), wishes.end()), wishes.end());
    for (const Wish& wish : wishes) {
      const Placement from =
          owner(wish.value) < 0 ? made_.outside(wish.value) : outputs[place(wish.value)];
      costs.communication[s] += move_time(wish.value, from, wish.to);
    }
  }

  std::uint64_t signature_of(const Pair& pair, const std::vector<Use>& uses) const {
    std::uint64_t hash =
        mixed(mixed(hash_of("edge"), first_like_[pair.first]), first_like_[pair.second]);
    std::map<int, int> seen;  // values used several times
    std::map<int, int> loops;
    for (const Use& use : uses) {
      hash = mixed(hash, owner(use.value) == pair.first ? 1 : 2);
      hash = mixed(mixed(hash, place(use.value)), use.operand < 0
                                                      ? (1ULL << 40) + first_output_[use.node]
                                                      : first_operand_[use.node] + use.operand);
      hash = mixed(hash, static_cast<std::uint64_t>(
                             analysis_.program.trips(analysis_.program.values[use.value].node)));
      hash = mixed(hash, seen.try_emplace(use.value, static_cast<int>(seen.size())).first->second);
      const int loop = analysis_.program.entered_loop(use.value, use.node);
      hash = mixed(hash, loops.try_emplace(loop, static_cast<int>(loops.size())).first->second);
    }
    return hash;
  }

  void build_edges() {
    std::vector<const std::pair<const Pair, std::vector<Use>>*> all;
    for (const auto& entry : uses_) all.push_back(&entry);
    made_.edges.resize(all.size());
    std::map<std::uint64_t, int> known;
    std::vector<int> first(all.size());
    std::vector<int> firsts;
    for (int e = 0; e < static_cast<int>(all.size()); ++e) {
      first[e] = known.try_emplace(signature_of(all[e]->first, all[e]->second), e).first->second;
      if (first[e] == e) firsts.push_back(e);
      made_.edges[e].a = all[e]->first.first;
      made_.edges[e].b = all[e]->first.second;
    }
    parallel_for(static_cast<int>(firsts.size()), options_.threads,
                 [&](int i) { build_edge(firsts[i], all[firsts[i]]->second); });
    for (std::size_t e = 0; e < all.size(); ++e) made_.edges[e].time = made_.edges[first[e]].time;
  }

  void build_edge(int e, const std::vector<Use>& uses) {
    EdgeCosts& edge = made_.edges[e];
    const std::size_t rows = made_.blocks[edge.a].strategies.size();
    const std::size_t columns = made_.blocks[edge.b].strategies.size();
    edge.time.assign(rows * columns, Seconds(0));
    std::vector<Wish> wishes;
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j)
        edge.time[i * columns + j] = edge_time(edge, uses, {i, j}, wishes);
  }

  Seconds edge_time(const EdgeCosts& edge, const std::vector<Use>& uses,
                    const std::pair<std::size_t, std::size_t>& chosen,
                    std::vector<Wish>& wishes) const {
    wishes.clear();
    for (const Use& use : uses) {
      const int consumer = analysis_.blocks.of_node[use.node];
      const std::size_t s = consumer == edge.a ? chosen.first : chosen.second;
      const BlockTable& table = tables_[first_like_[consumer]];
      wishes.push_back({use.value,
                        use.operand < 0 ? table.outputs[s][first_output_[use.node]]
                                        : table.operands[s][first_operand_[use.node] + use.operand],
                        analysis_.program.entered_loop(use.value, use.node)});
    }
    std::ranges::sort(wishes);
    wishes.erase(std::unique(wishes.begin(), wishes.end()), wishes.end());
    Seconds sum;
    for (const Wish& wish : wishes) {
      const int from = owner(wish.value);
      const std::size_t s = from == edge.a ? chosen.first : chosen.second;
      const BlockTable& table = tables_[first_like_[from]];
      sum += move_time(wish.value, table.outputs[s][place(wish.value)], wish.to);
    }
    return sum;
  }

  void add_shared() {
    const Program& program = analysis_.program;
    for (int n = 0; n < static_cast<int>(program.nodes.size()); ++n) {
      if (analysis_.blocks.of_node[n] >= 0) continue;
      made_.shared += node_time(analysis_, mesh_.device, n) * program.trips(n);
      for (const int value : program.nodes[n].outputs)
        if (kept_[value] != 0) made_.shared_memory += size_of(*program.values[value].shape);
    }
  }

  const Analysis& analysis_;
  const Mesh& mesh_;
  const CostOptions& options_;
  GraphCosts made_;
  std::map<Pair, std::vector<Use>> uses_;
  // Of each block: results, and the arguments (of the same block, or of none) that they replace.
  std::vector<std::vector<std::pair<int, int>>> replacing_;
  std::vector<int> first_operand_;  // of each node: where its operands begin in its block's table
  std::vector<int> first_output_;
  std::vector<char> kept_;
  std::vector<char> updates_meet_;  // of each block: another one uses what its update makes, or
                                    // makes what it uses
  std::vector<int> first_like_;     // of each block: the first that is the same
  std::vector<BlockTable> tables_;
};

}  // namespace

GraphCosts costs_of(const Analysis& analysis, const Mesh& mesh, const CostOptions& options) {
  return CostBuilder(analysis, mesh, options).build();
}

}  // namespace plait::graph
