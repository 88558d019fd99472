#include "graph/search/costs.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "base/parallel.h"
#include "graph/block/numbering.h"
#include "graph/search/carried.h"
#include "graph/search/liveness.h"
#include "graph/search/pieces.h"
#include "graph/search/signature.h"

namespace plait::graph {
namespace {

// A wish for a value at a placement; each wish is met once.
struct Wish {
  int value = 0;
  Placement to;
  int barrier = -1;    // that it goes through
  bool again = false;  // as gathers_again
  int loop = -1;       // that it is moved again for
  bool alone = false;  // met by the block that is timed alone
  friend auto operator<=>(const Wish&, const Wish&) = default;
};

// Where a block's operands and outputs are under each strategy, its nodes one after the other.
struct BlockTable {
  std::vector<std::vector<Placement>> operands;
  std::vector<std::vector<Placement>> outputs;
  // What a block that is timed alone does not do: arguments to where they are wanted, and back what
  // replaces them.
  std::vector<Seconds> handing;
};

// Times of moves of one pair of blocks, which meets each of them under many strategies.
class MoveTimes {
 public:
  template <typename Compute>
  Seconds get(int value, const Placement& from, const Placement& to, const Compute& compute) {
    const auto [it, fresh] = known_.try_emplace({value, packed(from), packed(to)});
    if (fresh) it->second = compute();
    return it->second;
  }

 private:
  struct MoveKey {
    int value = 0;
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    friend bool operator==(const MoveKey&, const MoveKey&) = default;
  };
  struct HashOfMove {
    std::size_t operator()(const MoveKey& key) const {
      return mixed(mixed(key.from, key.to), static_cast<std::uint64_t>(key.value));
    }
  };
  static std::uint64_t packed(const Placement& placement) {
    std::uint64_t word = 0;
    for (int a = 0; a < kMostAxes; ++a)
      word = word << 16U | static_cast<std::uint64_t>(placement.dim[a] + 1) << 8U |
             static_cast<std::uint64_t>(placement.rank[a]);
    return word;
  }
  std::unordered_map<MoveKey, Seconds, HashOfMove> known_;
};

// Blocks that are the same but for which layer they belong to are evaluated once, and so are pairs
// of them.
class CostBuilder {
 public:
  CostBuilder(const Analysis& analysis, const Mesh& mesh, const CostOptions& options)
      : analysis_(analysis),
        mesh_(mesh),
        options_(options),
        uses_(find_uses(analysis)),
        kept_(kept_until_backward(analysis)),
        is_read_(read_values(analysis.program)) {
    if (options.keep) made_.kept = kept_shardings(analysis.program, mesh);
  }

  GraphCosts build() {
    const int count = static_cast<int>(analysis_.blocks.blocks.size());
    made_.whole = options_.whole;
    made_.blocks.resize(count);
    tables_.resize(count);
    const CostContext context = this->context();
    std::map<std::uint64_t, int> known;
    std::vector<int> firsts;
    for (int b = 0; b < count; ++b) {
      const std::uint64_t signature = signature_of(context, b);
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
  CostContext context() const { return {analysis_, mesh_, uses_, made_.kept, kept_}; }
  int owner(int value) const { return owner_of(analysis_, value); }
  int place(int value) const { return uses_.place(analysis_.program, value); }

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
      const std::size_t first = made_.blocks[b].strategies.size();
      add_strategy(b, strategy);
      if (copied_axes(block, mesh_, strategy) == 0) continue;
      for (const Sharing sharing : sharings_of(analysis_, b)) {
        strategy.sharing = sharing;
        add_strategy(b, strategy);
        drop_useless(b, first);
      }
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
    tables_[b].handing.emplace_back();
    build_strategy(b, s);
  }

  // Of those from `first` on, which differ in what devices share, the last was added: one goes if
  // another is neither slower nor larger and other blocks cannot tell, or if nothing could be
  // shared.
  void drop_useless(int b, std::size_t first) {
    BlockCosts& costs = made_.blocks[b];
    const std::size_t last = costs.strategies.size() - 1;
    const auto beats = [&](std::size_t one, std::size_t other) {
      return costs.compute[one] + costs.communication[one] <=
                 costs.compute[other] + costs.communication[other] &&
             costs.memory[one] <= costs.memory[other];
    };
    for (std::size_t s = first; s < last; ++s) {
      const bool same = tables_[b].outputs[last] == tables_[b].outputs[s] &&
                        tables_[b].operands[last] == tables_[b].operands[s];
      if (same || (uses_.updates_meet[b] == 0 && beats(s, last))) return drop(b, last);
    }
    if (uses_.updates_meet[b] != 0) return;
    for (std::size_t s = last; s-- > first;)
      if (beats(costs.strategies.size() - 1, s)) drop(b, s);
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
    tables_[b].handing.erase(tables_[b].handing.begin() + at);
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
      by_formula += costs.compute[s] + costs.communication[s] - tables_[b].handing[s];
      by_clock += found->second;
      costs.compute[s] = found->second;
      costs.communication[s] = tables_[b].handing[s];
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
    std::set<std::tuple<int, Placement, std::string>> windows;
    for (const int n : analysis_.blocks.blocks[b].nodes) {
      const Node& node = program.nodes[n];
      const NodePlacement at = place_node(analysis_, mesh_, n, costs.axes[s]);
      const double trips = program.trips(n);
      costs.compute[s] += node_time(analysis_, mesh_, n, at, options_.products) * trips;
      costs.communication[s] += time_of(mesh_, at.reductions) * trips;
      if (at.window.empty() ||
          windows.emplace(node.operands.front(), at.operands.front(), at.window).second)
        costs.communication[s] += time_of(mesh_, at.halos) * trips;
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
              wish(node.operands[i], at.operands[i], n, static_cast<int>(i), costs.strategies[s]));
    }
    for (const auto& [value, argument] : uses_.replacing[b]) {
      const Placement to =
          owner(argument) == b ? outputs[place(argument)] : made_.outside(argument);
      wishes.push_back({.value = value, .to = to});
      if (!piece_replaces(analysis_, is_read_, value, argument))
        tables_[b].handing[s] += move_time(value, outputs[place(value)], to);
    }
    const auto at = [&](int value) {
      return owner(value) < 0 ? made_.outside(value) : outputs[place(value)];
    };
    make_unique(wishes, at);
    for (const Wish& wish : wishes) {
      const Placement from = at(wish.value);
      const Seconds time = move_time(wish.value, from, wish.to);
      costs.communication[s] += time;
      if (program.nodes[program.values[wish.value].node].kind == NodeKind::argument && !wish.alone)
        tables_[b].handing[s] += time;
    }
  }

  Wish wish(int value, const Placement& to, int node, int operand, const Strategy& of_maker) const {
    const Program& program = analysis_.program;
    const bool again = gathers_again(analysis_, of_maker, value, node);
    return {.value = value,
            .to = to,
            .barrier = program.barrier(node, operand),
            .again = again,
            .loop = again ? program.entered_loop(value, node) : -1,
            .alone = operand >= 0 && piece_brings(analysis_, value, node)};
  }

  template <typename At>
  void make_unique(std::vector<Wish>& wishes, const At& at) const {
    for (Wish& wish : wishes) {
      if (wish.barrier >= 0 || wish.again) continue;
      const auto [value, to] = untransposed(analysis_, wish.value, wish.to, at);
      wish.alone = wish.alone || value != wish.value;  // what transposes it is there
      wish.value = value;
      wish.to = to;
    }
    std::ranges::sort(wishes);
    wishes.erase(std::unique(wishes.begin(), wishes.end()), wishes.end());
  }

  void build_edges() {
    std::vector<const std::pair<const std::pair<int, int>, std::vector<Use>>*> all;
    for (const auto& entry : uses_.between) all.push_back(&entry);
    made_.edges.resize(all.size());
    std::map<std::uint64_t, int> known;
    std::vector<int> first(all.size());
    std::vector<int> firsts;
    for (int e = 0; e < static_cast<int>(all.size()); ++e) {
      first[e] =
          known.try_emplace(signature_of(context(), first_like_, all[e]->first, all[e]->second), e)
              .first->second;
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
    MoveTimes known;
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j)
        edge.time[i * columns + j] = edge_time(edge, uses, {i, j}, wishes, known);
  }

  Seconds edge_time(const EdgeCosts& edge, const std::vector<Use>& uses,
                    const std::pair<std::size_t, std::size_t>& chosen, std::vector<Wish>& wishes,
                    MoveTimes& known) const {
    wishes.clear();
    for (const Use& use : uses) {
      const int consumer = analysis_.blocks.of_node[use.node];
      const std::size_t s = consumer == edge.a ? chosen.first : chosen.second;
      const BlockTable& table = tables_[first_like_[consumer]];
      const int maker = owner(use.value);
      const Placement& to = use.operand < 0
                                ? table.outputs[s][uses_.first_output[use.node]]
                                : table.operands[s][uses_.first_operand[use.node] + use.operand];
      wishes.push_back(
          wish(use.value, to, use.node, use.operand,
               made_.blocks[maker].strategies[maker == edge.a ? chosen.first : chosen.second]));
    }
    const auto at = [&](int value) -> const Placement& {
      const int from = owner(value);
      const std::size_t s = from == edge.a ? chosen.first : chosen.second;
      return tables_[first_like_[from]].outputs[s][place(value)];
    };
    make_unique(wishes, at);
    Seconds sum;
    for (const Wish& wish : wishes) {
      const Placement& from = at(wish.value);
      sum += known.get(wish.value, from, wish.to,
                       [&] { return move_time(wish.value, from, wish.to); });
    }
    return sum;
  }

  void add_shared() {
    const Program& program = analysis_.program;
    for (int n = 0; n < static_cast<int>(program.nodes.size()); ++n) {
      if (analysis_.blocks.of_node[n] >= 0) continue;
      NodePlacement whole;
      whole.operands.resize(program.nodes[n].operands.size());
      made_.shared += node_time(analysis_, mesh_, n, whole, options_.products) * program.trips(n);
      for (const int value : program.nodes[n].outputs)
        if (kept_[value] != 0) made_.shared_memory += size_of(*program.values[value].shape);
    }
  }

  const Analysis& analysis_;
  const Mesh& mesh_;
  const CostOptions& options_;
  GraphCosts made_;
  Uses uses_;
  std::vector<char> kept_;
  std::vector<char> is_read_;    // values
  std::vector<int> first_like_;  // of each block: the first that is the same
  std::vector<BlockTable> tables_;
};

}  // namespace

GraphCosts costs_of(const Analysis& analysis, const Mesh& mesh, const CostOptions& options) {
  return CostBuilder(analysis, mesh, options).build();
}

}  // namespace plait::graph
