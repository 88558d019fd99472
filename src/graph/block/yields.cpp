#include "graph/block/yields.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace plait::graph {
namespace {

// A part of a value: of its dimensions' factors, in order.
struct PartOfValue {
  int value = 0;
  int part = 0;
  friend auto operator<=>(const PartOfValue&, const PartOfValue&) = default;
};

class Yielding {
 public:
  Yielding(const Program& program, const std::vector<Rule>& rules, const Blocks& blocks)
      : program_(program), rules_(rules), blocks_(blocks) {}

  std::vector<std::vector<char>> run() {
    made_.resize(program_.nodes.size());
    for (std::size_t n = 0; n < made_.size(); ++n) made_[n].assign(rules_[n].factors.size(), 0);
    find_twice();
    if (numbers_.empty()) return std::move(made_);
    parent_.resize(numbers_.size());
    std::iota(parent_.begin(), parent_.end(), 0);
    reductions_.assign(numbers_.size(), 0);
    each_node([&](int n) { follow(n); });
    for (std::size_t i = 0; i < parent_.size(); ++i)
      if (const int root = find(static_cast<int>(i)); root != static_cast<int>(i))
        reductions_[root] += reductions_[i];
    each_node([&](int n) { mark(n); });
    return std::move(made_);
  }

 private:
  template <typename Visit>
  void each_node(const Visit& visit) {
    for (int n = 0; n < static_cast<int>(program_.nodes.size()); ++n)
      if (blocks_.of_node[n] >= 0) visit(n);
  }

  // Factors of a node and the parts of values that they stand at.
  template <typename Visit>
  void each_place(int n, const Visit& visit) const {
    const Node& node = program_.nodes[n];
    const auto tensor = [&](const TensorFactors& factors, int value) {
      int part = 0;
      for (const auto& dim : factors)
        for (const int f : dim) visit(f, PartOfValue{value, part++});
    };
    for (std::size_t i = 0; i < node.operands.size(); ++i)
      tensor(rules_[n].operands[i], node.operands[i]);
    for (std::size_t o = 0; o < node.outputs.size(); ++o)
      tensor(rules_[n].outputs[o], node.outputs[o]);
  }

  // Numbers the parts of values that have another part of their class, by value.
  void find_twice() {
    each_node([&](int n) {
      for (std::size_t o = 0; o < program_.nodes[n].outputs.size(); ++o) {
        std::vector<int> classes;
        for (const auto& dim : rules_[n].outputs[o])
          for (const int f : dim) classes.push_back(blocks_.classes[n][f]);
        for (std::size_t p = 0; p < classes.size(); ++p)
          if (classes[p] >= 0 && std::ranges::count(classes, classes[p]) > 1) {
            const PartOfValue part{program_.nodes[n].outputs[o], static_cast<int>(p)};
            numbers_.emplace(part, static_cast<int>(numbers_.size()));
            classes_[part] = classes[p];
          }
      }
    });
  }

  int find(int i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }

  void follow(int n) {
    const Rule& rule = rules_[n];
    const bool reduces = !is_contraction(program_, program_.nodes[n]);
    std::vector<int> first(rule.factors.size(), -1);
    each_place(n, [&](int f, const PartOfValue& part) {
      const auto found = numbers_.find(part);
      if (found == numbers_.end() || rule.factors[f].kind == FactorKind::replication) return;
      if (reduces && rule.factors[f].kind == FactorKind::reduction) ++reductions_[found->second];
      if (first[f] < 0) {
        first[f] = found->second;
        return;
      }
      const int a = find(first[f]);
      const int b = find(found->second);
      parent_[std::max(a, b)] = std::min(a, b);
    });
  }

  // The part of a value that is divided for its class: the least of (reductions, number).
  bool leads(const PartOfValue& part) {
    const auto rank = [&](int number) {
      const int root = find(number);
      return std::pair(reductions_[root], root);
    };
    const auto mine = rank(numbers_.at(part));
    for (auto at = numbers_.lower_bound({part.value, 0});
         at != numbers_.end() && at->first.value == part.value; ++at)
      if (at->first != part && classes_.at(at->first) == classes_.at(part) &&
          std::pair(rank(at->second), at->first.part) < std::pair(mine, part.part))
        return false;
    return true;
  }

  void mark(int n) {
    each_place(n, [&](int f, const PartOfValue& part) {
      if (numbers_.contains(part) && !leads(part)) made_[n][f] = 1;
    });
  }

  const Program& program_;
  const std::vector<Rule>& rules_;
  const Blocks& blocks_;
  std::map<PartOfValue, int> numbers_;
  std::map<PartOfValue, int> classes_;
  std::vector<int> parent_;
  std::vector<int> reductions_;
  std::vector<std::vector<char>> made_;
};

}  // namespace

std::vector<std::vector<char>> find_yielding(const Program& program, const std::vector<Rule>& rules,
                                             const Blocks& blocks) {
  return Yielding(program, rules, blocks).run();
}

}  // namespace plait::graph
