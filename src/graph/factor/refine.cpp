#include "graph/factor/refine.h"

#include <algorithm>

namespace plait::graph {
namespace {

using Cuts = std::vector<std::int64_t>;  // products of the leading parts, ascending, without 1

// Where a factor stands: a dimension of a value, behind parts that multiply to `before`.
struct Occurrence {
  int slot = 0;  // of the dimension, among all values'
  std::int64_t before = 1;
  bool operand = false;
  int tensor = 0;
  int dim = 0;
};

class Refiner {
 public:
  Refiner(const Program& program, std::vector<Rule>& rules) : program_(program), rules_(rules) {
    first_slot_.reserve(program.values.size());
    for (const Value& value : program.values) {
      first_slot_.push_back(static_cast<int>(size_.size()));
      size_.insert(size_.end(), value.dims().begin(), value.dims().end());
    }
    cuts_.resize(size_.size());
  }

  void run() {
    const auto users = program_.users();
    std::vector<int> open;
    std::vector<char> waiting(rules_.size(), 0);
    const auto wake = [&](int node) {
      if (waiting[node]++ == 0) open.push_back(node);
    };
    for (int n = 0; n < static_cast<int>(rules_.size()); ++n) start(n);
    for (int n = static_cast<int>(rules_.size()) - 1; n >= 0; --n) wake(n);
    while (!open.empty()) {
      const int node = open.back();
      open.pop_back();
      waiting[node] = 0;
      changed_.clear();
      exchange(node);
      for (const int value : changed_) {
        wake(program_.values[value].node);
        for (const int user : users[value]) wake(user);
      }
    }
    for (int n = 0; n < static_cast<int>(rules_.size()); ++n) rebuild(n);
  }

 private:
  int slot(int value, int dim) const { return first_slot_[value] + dim; }

  // True where the cut is there afterwards: it divides the next larger, and the next smaller it.
  bool add_cut(int at, std::int64_t cut) {
    if (cut == 1 || cut == size_[at]) return true;
    Cuts& cuts = cuts_[at];
    const auto next = std::ranges::lower_bound(cuts, cut);
    if (next != cuts.end() && *next == cut) return true;
    const std::int64_t above = next == cuts.end() ? size_[at] : *next;
    const std::int64_t below = next == cuts.begin() ? 1 : *(next - 1);
    if (above % cut != 0 || cut % below != 0) return false;
    cuts.insert(next, cut);
    grew_ = true;
    return true;
  }

  template <typename Visit>
  void each_dim(int n, const Visit& visit) const {
    const Node& node = program_.nodes[n];
    const Rule& rule = rules_[n];
    for (int t = 0; t < static_cast<int>(rule.operands.size()); ++t)
      for (int d = 0; d < static_cast<int>(rule.operands[t].size()); ++d)
        visit(rule.operands[t][d], Occurrence{slot(node.operands[t], d), 1, true, t, d});
    for (int t = 0; t < static_cast<int>(rule.outputs.size()); ++t)
      for (int d = 0; d < static_cast<int>(rule.outputs[t].size()); ++d)
        visit(rule.outputs[t][d], Occurrence{slot(node.outputs[t], d), 1, false, t, d});
  }

  void start(int n) {
    each_dim(n, [&](const std::vector<int>& factors, const Occurrence& at) {
      std::int64_t product = 1;
      for (const int f : factors) {
        product *= rules_[n].factors[f].size;
        add_cut(at.slot, product);
      }
    });
  }

  // The places of each factor of a node.
  void find_occurrences(int n) {
    occurrences_.assign(rules_[n].factors.size(), {});
    each_dim(n, [&](const std::vector<int>& factors, const Occurrence& at) {
      Occurrence here = at;
      for (const int f : factors) {
        occurrences_[f].push_back(here);
        here.before *= rules_[n].factors[f].size;
      }
    });
  }

  // The cuts inside a factor at one of its places, relative to where it begins.
  Cuts inside(const Occurrence& at, std::int64_t size) const {
    Cuts found;
    if (at.before == 0) return found;  // an array without elements
    for (const std::int64_t cut : cuts_[at.slot])
      if (cut > at.before && cut < at.before * size && cut % at.before == 0)
        found.push_back(cut / at.before);
    return found;
  }

  void exchange(int n) {
    find_occurrences(n);
    const Rule& rule = rules_[n];
    const Node& node = program_.nodes[n];
    for (std::size_t f = 0; f < rule.factors.size(); ++f) {
      if (occurrences_[f].size() < 2) continue;
      for (const Occurrence& from : occurrences_[f]) {
        const Cuts cuts = inside(from, rule.factors[f].size);
        for (const Occurrence& to : occurrences_[f]) {
          grew_ = false;
          for (const std::int64_t cut : cuts) add_cut(to.slot, to.before * cut);
          if (grew_)
            changed_.push_back(to.operand ? node.operands[to.tensor] : node.outputs[to.tensor]);
        }
      }
    }
  }

  bool aligned(const Occurrence& at, std::int64_t size) const {
    const auto has = [&](std::int64_t cut) {
      return cut == 1 || cut == size_[at.slot] || std::ranges::binary_search(cuts_[at.slot], cut);
    };
    return has(at.before) && has(at.before * size);
  }

  // Most rules stay as they are: no factor is cut.
  bool is_whole(int n) const {
    bool whole = true;
    each_dim(n, [&](const std::vector<int>& factors, const Occurrence& at) {
      const std::size_t parts = size_[at.slot] == 1 ? 0 : cuts_[at.slot].size() + 1;
      whole = whole && parts == factors.size();
    });
    return whole;
  }

  void rebuild(int n) {
    find_occurrences(n);
    const Rule& rule = rules_[n];
    bool all_aligned = true;
    for (std::size_t f = 0; f < rule.factors.size(); ++f)
      for (const Occurrence& at : occurrences_[f])
        all_aligned = all_aligned && aligned(at, rule.factors[f].size);
    if (all_aligned && is_whole(n)) return;
    Rule made;
    made.known = rule.known;
    made.halos = rule.halos;
    for (const TensorFactors& tensor : rule.operands) made.operands.emplace_back(tensor.size());
    for (const TensorFactors& tensor : rule.outputs) made.outputs.emplace_back(tensor.size());
    // Of each factor: its parts, or none where its places do not agree.
    std::vector<std::vector<int>> parts(rule.factors.size());
    for (std::size_t f = 0; f < rule.factors.size(); ++f) parts[f] = split(made, rule, f);
    each_dim(n, [&](const std::vector<int>& factors, const Occurrence& at) {
      auto& into = at.operand ? made.operands[at.tensor][at.dim] : made.outputs[at.tensor][at.dim];
      for (const int f : factors) into.insert(into.end(), parts[f].begin(), parts[f].end());
      const bool broken = std::ranges::any_of(factors, [&](int f) { return parts[f].empty(); });
      if (broken) into = private_parts(made, at.slot);
    });
    rules_[n] = std::move(made);
  }

  std::vector<int> split(Rule& made, const Rule& rule, std::size_t f) {
    const std::int64_t size = rule.factors[f].size;
    const Cuts cuts = inside(occurrences_[f].front(), size);
    for (const Occurrence& at : occurrences_[f])
      if (!aligned(at, size) || inside(at, size) != cuts) return {};
    std::vector<int> parts;
    std::int64_t before = 1;
    for (std::size_t i = 0; i <= cuts.size(); ++i) {
      const std::int64_t end = i < cuts.size() ? cuts[i] : size;
      parts.push_back(static_cast<int>(made.factors.size()));
      made.factors.push_back({end / before, rule.factors[f].kind});
      before = end;
    }
    return parts;
  }

  std::vector<int> private_parts(Rule& made, int at) {
    std::vector<int> parts;
    std::int64_t before = 1;
    for (std::size_t i = 0; i <= cuts_[at].size(); ++i) {
      const std::int64_t end = i < cuts_[at].size() ? cuts_[at][i] : size_[at];
      parts.push_back(static_cast<int>(made.factors.size()));
      made.factors.push_back({end / before, FactorKind::replication});
      before = end;
    }
    return parts;
  }

  const Program& program_;
  std::vector<Rule>& rules_;
  std::vector<int> first_slot_;
  std::vector<std::int64_t> size_;
  std::vector<Cuts> cuts_;
  std::vector<std::vector<Occurrence>> occurrences_;
  std::vector<int> changed_;
  bool grew_ = false;
};

}  // namespace

void refine(const Program& program, std::vector<Rule>& rules) { Refiner(program, rules).run(); }

}  // namespace plait::graph
