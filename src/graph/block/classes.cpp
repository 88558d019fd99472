#include <algorithm>
#include <map>
#include <unordered_map>

#include "graph/block/blocks.h"
#include "graph/block/yields.h"

namespace plait::graph {
namespace {

// Union-find over the factors of values ("parts"), so that what is partitioned together has one
// class. Parts of a value belong to the block that makes it; a block that uses a value of another
// sees it through a stand-in of its own, so that partitions end at the border between blocks.
class Classifier {
 public:
  Classifier(const Program& program, const std::vector<Rule>& rules, const Phases& phases,
             const std::vector<std::uint64_t>& numbers, const Assignment& pairs, Blocks& blocks)
      : program_(program),
        rules_(rules),
        phases_(phases),
        numbers_(numbers),
        pairs_(pairs),
        blocks_(blocks) {
    for (const Value& value : program.values) {
      first_part_.push_back(static_cast<int>(parent_.size()));
      for (const auto& dim : rules[value.node].outputs[value.output])
        for (std::size_t i = 0; i < dim.size(); ++i) new_part();
    }
  }

  void run() {
    for (std::size_t n = 0; n < program_.nodes.size(); ++n)
      if (blocks_.of_node[n] >= 0) unite(static_cast<int>(n));
    for (std::size_t n = 0; n < program_.nodes.size(); ++n) {
      if (pairs_.again[n] >= 0) unite_repeated(static_cast<int>(n), pairs_.again[n]);
      if (pairs_.gradient_of[n] >= 0) unite_gradient(static_cast<int>(n), pairs_.gradient_of[n]);
    }
    blocks_.classes.assign(program_.nodes.size(), {});
    for (std::size_t n = 0; n < program_.nodes.size(); ++n)
      if (blocks_.of_node[n] >= 0) label(static_cast<int>(n));
    blocks_.class_count = next_class_;
  }

 private:
  int new_part() {
    parent_.push_back(static_cast<int>(parent_.size()));
    return parent_.back();
  }
  int find(int p) {
    while (parent_[p] != p) p = parent_[p] = parent_[parent_[p]];
    return p;
  }
  void unite(int a, int b) {
    a = find(a);
    b = find(b);
    if (a != b) parent_[std::max(a, b)] = std::min(a, b);
  }

  // The first part of the stand-in of a value in a block: one for all values that are the same.
  int stand_in(int block, int value) {
    const Value& v = program_.values[value];
    std::vector<std::int64_t> sizes;
    const Rule& rule = rules_[v.node];
    for (const auto& dim : rule.outputs[v.output])
      for (const int f : dim) sizes.push_back(rule.factors[f].size);
    const auto [it, fresh] = stand_ins_.try_emplace({block, numbers_[value], sizes}, 0);
    if (fresh) {
      it->second = static_cast<int>(parent_.size());
      for (std::size_t i = 0; i < sizes.size(); ++i) new_part();
    }
    return it->second;
  }

  // Whether the partition of an operand from another block follows that of the op. Sums of two
  // things do not decide it: a residual would tie the input of a block to its output.
  bool follows(const Node& node, const Rule& rule) const {
    if (is_contraction(program_, node)) return true;
    int arrays = 0;
    for (const int operand : node.operands)
      arrays += program_.values[operand].dims().empty() ? 0 : 1;
    const bool reduces = std::ranges::any_of(
        rule.factors, [](const Factor& f) { return f.kind == FactorKind::reduction; });
    return arrays <= 1 || reduces;
  }

  // The first part of what an operand or output is to the block; -1 where it is not followed.
  int parts_of(int block, int value, bool with_others) {
    const int owner = blocks_.of_node[program_.values[value].node];
    if (owner == block) return first_part_[value];
    return with_others ? stand_in(block, value) : -1;
  }

  template <typename Visit>
  void each_place(int n, const Visit& visit) {
    const Node& node = program_.nodes[n];
    const Rule& rule = rules_[n];
    const int block = blocks_.of_node[n];
    const bool with_others = follows(node, rule);
    const auto tensor = [&](const TensorFactors& factors, int value, bool output) {
      const int first = parts_of(block, value, with_others || output);
      int at = 0;
      for (const auto& dim : factors)
        for (const int f : dim) {
          if (first >= 0) visit(f, first + at);
          ++at;
        }
    };
    for (std::size_t i = 0; i < node.operands.size(); ++i)
      tensor(rule.operands[i], node.operands[i], false);
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      tensor(rule.outputs[i], node.outputs[i], true);
  }

  void unite(int n) {
    const Rule& rule = rules_[n];
    std::vector<int> seen(rule.factors.size(), -1);
    each_place(n, [&](int f, int part) {
      if (rule.factors[f].kind == FactorKind::replication) return;
      if (seen[f] < 0) {
        seen[f] = part;
      } else {
        unite(seen[f], part);
      }
    });
    // Values that are the same are partitioned the same.
    const int block = blocks_.of_node[n];
    for (const int value : program_.nodes[n].outputs) {
      const int other = stand_in(block, value);
      const int end = value + 1 < static_cast<int>(first_part_.size())
                          ? first_part_[value + 1]
                          : first_part_[value] + part_count(value);
      for (int p = first_part_[value]; p < end; ++p) unite(p, other + p - first_part_[value]);
    }
  }

  // A part for each factor of a node; -1 where it has none.
  std::vector<int> parts_by_factor(int n) {
    std::vector<int> parts(rules_[n].factors.size(), -1);
    each_place(n, [&](int f, int part) {
      if (rules_[n].factors[f].kind != FactorKind::replication) parts[f] = part;
    });
    return parts;
  }

  void unite_repeated(int n, int forward) {
    const std::vector<int> again = parts_by_factor(n);
    const std::vector<int> first = parts_by_factor(forward);
    for (std::size_t f = 0; f < first.size(); ++f)
      if (first[f] >= 0 && again[f] >= 0) unite(first[f], again[f]);
  }

  // The weight ties columns and inner factors of a product to those of its gradients; what is left
  // of a gradient are the rows.
  void unite_gradient(int n, int forward) {
    const std::vector<int> theirs = parts_by_factor(n);
    const std::vector<int> ours = parts_by_factor(forward);
    const ContractionFactors factors = contraction_factors(program_.nodes[forward], rules_[forward],
                                                           phases_.weight_operand[forward]);
    std::vector<int> tied;
    for (const auto* group : {&factors.columns, &factors.inner, &factors.batch})
      for (const int f : *group)
        if (ours[f] >= 0) tied.push_back(find(ours[f]));
    std::vector<int> rest;
    std::vector<std::int64_t> sizes;
    for (const auto& tensor : rules_[n].operands)
      for (const auto& dim : tensor)
        for (const int f : dim) {
          if (theirs[f] < 0 || std::ranges::find(rest, theirs[f]) != rest.end()) continue;
          if (std::ranges::find(tied, find(theirs[f])) != tied.end()) continue;
          rest.push_back(theirs[f]);
          sizes.push_back(rules_[n].factors[f].size);
        }
    std::vector<std::int64_t> wanted;
    for (const int f : factors.rows) wanted.push_back(rules_[forward].factors[f].size);
    if (wanted != sizes) return;
    for (std::size_t i = 0; i < rest.size(); ++i)
      if (ours[factors.rows[i]] >= 0) unite(ours[factors.rows[i]], rest[i]);
  }

  int part_count(int value) const {
    const Value& v = program_.values[value];
    int count = 0;
    for (const auto& dim : rules_[v.node].outputs[v.output]) count += static_cast<int>(dim.size());
    return count;
  }

  void label(int n) {
    const Rule& rule = rules_[n];
    std::vector<int>& classes = blocks_.classes[n];
    classes.assign(rule.factors.size(), -1);
    each_place(n, [&](int f, int part) {
      if (rule.factors[f].kind == FactorKind::replication || classes[f] >= 0) return;
      const auto [it, fresh] = class_of_root_.try_emplace(find(part), next_class_);
      if (fresh) ++next_class_;
      classes[f] = it->second;
    });
  }

  using StandIn = std::tuple<int, std::uint64_t, std::vector<std::int64_t>>;
  const Program& program_;
  const std::vector<Rule>& rules_;
  const Phases& phases_;
  const std::vector<std::uint64_t>& numbers_;
  const Assignment& pairs_;
  Blocks& blocks_;
  std::vector<int> first_part_;
  std::vector<int> parent_;
  std::map<StandIn, int> stand_ins_;
  std::unordered_map<int, int> class_of_root_;
  int next_class_ = 0;
};

Role role_of(std::string name, const std::vector<int>& factors, const Rule& rule,
             const std::vector<int>& classes) {
  Role role{std::move(name), {}, {}, {0}};
  for (const int f : factors) {
    if (classes[f] < 0) continue;
    role.classes.push_back(classes[f]);
    role.sizes.push_back(rule.factors[f].size);
  }
  return role;
}

// In every array that has the factor, it is the first of its dimension.
bool begins_a_dimension(const Rule& rule, int factor) {
  for (const auto* tensors : {&rule.operands, &rule.outputs})
    for (const TensorFactors& tensor : *tensors)
      for (const auto& dim : tensor)
        if (std::ranges::find(dim, factor) != dim.end() && dim.front() != factor) return false;
  return true;
}

// The columns of a key contraction of several siblings, and the rest, as ways to divide the block.
std::vector<Role> roles_of(const Node& node, const Rule& rule, const std::vector<int>& classes,
                           int weight_operand) {
  const ContractionFactors factors = contraction_factors(node, rule, weight_operand);
  std::vector<Role> roles{role_of("columns", factors.columns, rule, classes),
                          role_of("rows", factors.rows, rule, classes),
                          role_of("inner", factors.inner, rule, classes)};
  for (std::size_t i = 0; i < factors.batch.size(); ++i)
    roles.push_back(role_of(i == 0 ? "batch" : "batch" + std::to_string(i + 1), {factors.batch[i]},
                            rule, classes));
  // Rows begin anew with each dimension of the activation.
  Role& rows = roles[1];
  for (std::size_t i = 1; i < factors.rows.size() && rows.classes.size() == factors.rows.size();
       ++i)
    if (begins_a_dimension(rule, factors.rows[i])) rows.starts.push_back(static_cast<int>(i));
  std::erase_if(roles, [](const Role& role) { return role.classes.empty(); });
  for (Role& role : roles) role.called = role.name;
  return roles;
}

// Columns that are heads.
void name_heads(const Program& program, const std::vector<Rule>& rules, const Phases& phases,
                Blocks& blocks) {
  for (int n = 0; n < static_cast<int>(program.nodes.size()); ++n) {
    const int b = blocks.of_node[n];
    const Node& node = program.nodes[n];
    if (b < 0 || phases.weight[n] >= 0 || !node.is("dot")) continue;
    for (const int f : contraction_factors(node, rules[n], -1).batch)
      for (Role& role : blocks.blocks[b].roles)
        if (role.name == "columns" && role.classes.front() == blocks.classes[n][f])
          role.called = "heads";
  }
}

}  // namespace

void find_classes(const Program& program, const std::vector<Rule>& rules, const Phases& phases,
                  const std::vector<std::uint64_t>& numbers, const Assignment& pairs,
                  Blocks& blocks) {
  Classifier(program, rules, phases, numbers, pairs, blocks).run();
  blocks.yields = find_yielding(program, rules, blocks);
  for (Block& block : blocks.blocks)
    block.roles = roles_of(program.nodes[block.key], rules[block.key], blocks.classes[block.key],
                           phases.weight_operand[block.key]);
  name_heads(program, rules, phases, blocks);
}

bool merge_batched_pairs(const Program& program, const std::vector<Rule>& rules,
                         const Phases& phases, const Blocks& classified, Assignment& assignment) {
  bool any = false;
  std::vector<int> into(classified.blocks.size());
  for (std::size_t b = 0; b < into.size(); ++b) into[b] = static_cast<int>(b);
  for (std::size_t b = 0; b < classified.blocks.size(); ++b) {
    const int key = classified.blocks[b].key;
    if (phases.weight[key] < 0) continue;
    const ContractionFactors factors =
        contraction_factors(program.nodes[key], rules[key], phases.weight_operand[key]);
    if (factors.batch.empty()) continue;
    const int left = phases.weight_operand[key] == 0 ? 1 : 0;
    const int value = program.nodes[key].operands[left];
    const int before = classified.of_node[program.values[value].node];
    if (before < 0 || before == static_cast<int>(b) || into[before] != before) continue;
    // Classes of the value's parts in the block that makes it.
    const Value& v = program.values[value];
    const Rule& made = rules[v.node];
    std::vector<int> class_of(rules[key].factors.size(), -1);
    for (std::size_t d = 0; d < made.outputs[v.output].size(); ++d)
      for (std::size_t i = 0; i < made.outputs[v.output][d].size(); ++i)
        class_of[rules[key].operands[left][d][i]] =
            classified.classes[v.node][made.outputs[v.output][d][i]];
    const auto is_in = [&](int f, std::string_view role) {
      return std::ranges::any_of(classified.blocks[before].roles, [&](const Role& r) {
        return r.name.starts_with(role) &&
               std::ranges::find(r.classes, class_of[f]) != r.classes.end();
      });
    };
    const bool pair =
        std::ranges::all_of(factors.batch, [&](int f) { return is_in(f, "batch"); }) &&
        std::ranges::any_of(factors.inner, [&](int f) { return is_in(f, "columns"); });
    if (!pair) continue;
    into[b] = before;
    any = true;
  }
  if (!any) return false;
  for (int& block : assignment.of_node)
    if (block >= 0) block = into[block];
  return true;
}

}  // namespace plait::graph
