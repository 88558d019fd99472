#include <algorithm>
#include <unordered_map>

#include "graph/block/blocks.h"
#include "graph/block/numbering.h"

namespace plait::graph {
namespace {

// Of a tensor: the factors of its dimensions in order.
std::vector<int> flat(const TensorFactors& tensor) {
  std::vector<int> all;
  for (const auto& dim : tensor) all.insert(all.end(), dim.begin(), dim.end());
  return all;
}

bool has(const std::vector<int>& all, int one) { return std::ranges::find(all, one) != all.end(); }

// Sets of contractions that will be one block.
class Groups {
 public:
  int make() {
    parent_.push_back(static_cast<int>(parent_.size()));
    return parent_.back();
  }
  int find(int g) {
    while (parent_[g] != g) g = parent_[g] = parent_[parent_[g]];
    return g;
  }
  void join(int a, int b) {
    a = find(a);
    b = find(b);
    if (a != b) parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<int> parent_;
};

class Assigner {
 public:
  Assigner(const Program& program, const std::vector<Rule>& rules, const Phases& phases,
           const std::vector<std::uint64_t>& numbers)
      : program_(program),
        rules_(rules),
        phases_(phases),
        numbers_(numbers),
        level_(levels_of(program)),
        of_node_(program.nodes.size(), -1),
        again_(program.nodes.size(), -1),
        gradient_of_(program.nodes.size(), -1) {}

  Assignment run() {
    merge_siblings();
    for (int n = 0; n < size(); ++n)
      if (phases_.of_node[n] == Phase::forward) visit_forward(n);
    find_gradients();
    for (int n = 0; n < size(); ++n)
      if (phases_.of_node[n] != Phase::forward) visit_backward(n);
    adopt_rest();
    return {std::move(of_node_), std::move(keys_), std::move(again_), std::move(gradient_of_)};
  }

 private:
  int size() const { return static_cast<int>(program_.nodes.size()); }
  int block_of_value(int value) const { return of_node_[program_.values[value].node]; }
  std::uint64_t number(int value) const { return numbers_[value]; }
  std::uint64_t result_number(int n) const { return numbers_[program_.nodes[n].outputs.front()]; }
  int activation(int n) const {
    const int weight = phases_.weight_operand[n];
    return program_.nodes[n].operands[weight == 0 ? 1 : 0];
  }

  // Weights that multiply the same activation (query, key and value; gate and up) make one block
  // where their results meet before another weight does.
  void merge_siblings() {
    std::unordered_map<std::uint64_t, std::vector<int>> by_input;
    for (int n = 0; n < size(); ++n)
      if (is_forward_weight(n) && contraction_factors_of(n).batch.empty())
        by_input[number(activation(n))].push_back(n);
    sibling_.assign(size(), -1);
    int families = 0;
    std::vector<int> family(size(), -1);
    for (int n = 0; n < size(); ++n) {
      if (!is_forward_weight(n)) continue;
      const auto found = by_input.find(number(activation(n)));
      if (found == by_input.end() || found->second.size() < 2 || found->second.front() != n)
        continue;
      for (const int member : found->second) {
        sibling_[member] = groups_of_siblings_.make();
        family[member] = families;
      }
      ++families;
    }
    if (families == 0) return;
    spread_siblings(family);
  }

  bool is_forward_weight(int n) const {
    return phases_.weight[n] >= 0 && phases_.of_node[n] == Phase::forward &&
           is_contraction(program_, program_.nodes[n]);
  }

  ContractionFactors contraction_factors_of(int n) const {
    return contraction_factors(program_.nodes[n], rules_[n], phases_.weight_operand[n]);
  }

  // Follows each sibling's result up to the next weight; families that meet there are joined.
  void spread_siblings(const std::vector<int>& family) {
    std::vector<std::vector<std::pair<int, int>>> reach(size());  // (family, sibling)
    for (int n = 0; n < size(); ++n) {
      const Node& node = program_.nodes[n];
      if (phases_.of_node[n] != Phase::forward || node.kind == NodeKind::argument) continue;
      if (phases_.weight[n] >= 0 && is_contraction(program_, node)) {
        if (sibling_[n] >= 0) reach[n].emplace_back(family[n], sibling_[n]);
        continue;
      }
      std::unordered_map<int, int> found;
      for (std::size_t i = 0; i < node.operands.size(); ++i) {
        if (node.kind == NodeKind::loop_enter && i > 0) break;
        for (const auto& [fam, sibling] : reach[program_.values[node.operands[i]].node]) {
          const auto [it, fresh] = found.emplace(fam, sibling);
          if (!fresh) groups_of_siblings_.join(it->second, sibling);
        }
      }
      reach[n].assign(found.begin(), found.end());
      std::ranges::sort(reach[n]);
    }
  }

  int new_block(int key) {
    keys_.push_back(key);
    return static_cast<int>(keys_.size()) - 1;
  }

  // The block of operands that comes last (forward) or first (backward) in the forward pass.
  int block_of_operands(const Node& node, bool latest) {
    int best = -1;
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      if (node.kind == NodeKind::loop_enter && i > 0) break;
      const int block = block_of_value(node.operands[i]);
      if (block < 0 || program_.values[node.operands[i]].dims().empty()) continue;
      if (best < 0 || (latest ? comes_before(best, block) : comes_before(block, best)))
        best = block;
    }
    return best;
  }

  bool comes_before(int a, int b) const {
    const int ka = keys_[a];
    const int kb = keys_[b];
    if (level_[ka] != level_[kb]) return level_[ka] < level_[kb];
    return result_number(ka) < result_number(kb);
  }

  void visit_forward(int n) {
    const Node& node = program_.nodes[n];
    if (node.kind == NodeKind::argument || node.kind == NodeKind::loop_enter) return;
    if (!is_contraction(program_, node)) {
      of_node_[n] = block_of_operands(node, true);
      return;
    }
    of_node_[n] = contraction_block(n);
    block_by_number_.emplace(result_number(n), of_node_[n]);
    if (phases_.weight[n] >= 0) {
      forward_by_weight_[phases_.weight[n]].push_back(n);
      forward_by_input_[number(activation(n))].push_back(n);
    }
  }

  int contraction_block(int n) {
    const auto same = block_by_number_.find(result_number(n));
    if (same != block_by_number_.end()) return same->second;
    if (phases_.weight[n] >= 0) {
      if (sibling_.empty() || sibling_[n] < 0) return new_block(n);
      const int group = groups_of_siblings_.find(sibling_[n]);
      const auto found = block_by_sibling_.find(group);
      if (found != block_by_sibling_.end()) return found->second;
      return block_by_sibling_[group] = new_block(n);
    }
    // Two activations: with a batch they follow the first block that they come from.
    const int first = block_of_operands(program_.nodes[n], false);
    if (first < 0 || contraction_factors_of(n).batch.empty()) return new_block(n);
    return first;
  }

  // Gradients belong to the block of the weight or of the input that they share with it.
  void find_gradients() {
    for (int n = 0; n < size(); ++n) {
      if (phases_.of_node[n] == Phase::forward || !is_contraction(program_, program_.nodes[n]))
        continue;
      if (const auto again = block_by_number_.find(result_number(n));
          again != block_by_number_.end()) {
        of_node_[n] = again->second;
      } else if (phases_.weight[n] >= 0) {
        again_[n] = recomputed(n);
        const int forward = again_[n] >= 0 ? again_[n] : input_gradient_of(n);
        if (forward < 0) continue;
        of_node_[n] = of_node_[forward];
        if (again_[n] < 0) gradient_of_[n] = forward;
        if (again_[n] < 0) by_gradient_[number(activation(n))].push_back(forward);
        if (again_[n] >= 0) forward_by_input_[number(activation(n))].push_back(forward);
      }
    }
    for (int n = 0; n < size(); ++n)
      if (phases_.of_node[n] != Phase::forward && is_contraction(program_, program_.nodes[n]) &&
          of_node_[n] < 0) {
        gradient_of_[n] = weight_gradient_of(n);
        if (gradient_of_[n] >= 0) of_node_[n] = of_node_[gradient_of_[n]];
      }
  }

  // The product with the same weight that this one repeats in the backward pass.
  int recomputed(int n) const {
    const auto found = forward_by_weight_.find(phases_.weight[n]);
    if (found == forward_by_weight_.end()) return -1;
    for (const int forward : found->second)
      if (rules_[n].operands == rules_[forward].operands &&
          rules_[n].outputs == rules_[forward].outputs &&
          rules_[n].factors == rules_[forward].factors)
        return forward;
    return -1;
  }

  // Of the products with the same weight, the one whose result has the sizes of this gradient.
  int input_gradient_of(int n) const {
    const auto found = forward_by_weight_.find(phases_.weight[n]);
    if (found == forward_by_weight_.end()) return -1;
    for (const int forward : found->second)
      if (same_sizes(activation(n), program_.nodes[forward].outputs.front())) return forward;
    return -1;
  }

  // The product that this is the weight gradient of: it has the sizes of the weight, and shares the
  // input with it, or the gradient with its input gradient, or best both.
  int weight_gradient_of(int n) const {
    const Node& node = program_.nodes[n];
    std::unordered_map<int, int> shared;
    for (const int operand : node.operands) {
      for (const auto* map : {&by_gradient_, &forward_by_input_}) {
        const auto found = map->find(number(operand));
        if (found == map->end()) continue;
        for (const int forward : found->second) ++shared[forward];
      }
    }
    int best = -1;
    for (const auto& [forward, count] : shared) {
      const Node& product = program_.nodes[forward];
      if (!same_sizes(node.outputs.front(), product.operands[phases_.weight_operand[forward]]))
        continue;
      if (best < 0 || count > shared[best] || (count == shared[best] && forward < best))
        best = forward;
    }
    return best;
  }

  bool same_sizes(int a, int b) const {
    const auto sorted = [&](int value) {
      std::vector<std::int64_t> dims;
      for (const std::int64_t d : program_.values[value].dims())
        if (d != 1) dims.push_back(d);
      std::ranges::sort(dims);
      return dims;
    };
    return sorted(a) == sorted(b);
  }

  void visit_backward(int n) {
    const Node& node = program_.nodes[n];
    if (of_node_[n] >= 0 || node.kind == NodeKind::argument || node.kind == NodeKind::loop_enter)
      return;
    const int first = block_of_operands(node, false);
    const bool own =
        is_contraction(program_, node) && (first < 0 || contraction_factors_of(n).batch.empty());
    of_node_[n] = own ? new_block(n) : first;
  }

  // Arguments, and what is made of them alone, go to the block that uses them; what several use
  // goes to the first where it is a weight, and else to none.
  void adopt_rest() {
    const auto users = program_.users();
    for (int n = 0; n < size(); ++n) {
      const Node& node = program_.nodes[n];
      if (node.kind == NodeKind::loop_enter && of_node_[n] < 0 && node.operands.size() > 1)
        of_node_[n] = block_of_value(node.operands[1]);
    }
    for (int n = size() - 1; n >= 0; --n)
      if (of_node_[n] < 0) of_node_[n] = block_of_users(n, users);
    while (follow_carried()) {
    }
  }

  // What is made of a value that a loop carries goes to the block that hands it on, and so does
  // what that is stored in.
  bool follow_carried() {
    bool any = false;
    for (int n = 0; n < size(); ++n) {
      const Node& node = program_.nodes[n];
      if (of_node_[n] >= 0 || node.kind == NodeKind::argument) continue;
      of_node_[n] = node.kind == NodeKind::loop_enter && node.operands.size() > 1
                        ? block_of_value(node.operands[1])
                        : block_of_operands(node, phases_.of_node[n] == Phase::forward);
      any = any || of_node_[n] >= 0;
    }
    return any;
  }

  int block_of_users(int n, const std::vector<std::vector<int>>& users) {
    int only = -1;
    bool several = false;
    for (const int output : program_.nodes[n].outputs) {
      for (const int user : users[output]) {
        const int block = of_node_[user];
        if (block < 0) continue;
        if (only >= 0 && only != block) several = true;
        if (only < 0 || comes_before(block, only)) only = block;
      }
    }
    return several && !is_weight_like(n) ? -1 : only;
  }

  bool is_weight_like(int n) const {
    const Node* node = &program_.nodes[n];
    while (node->kind == NodeKind::op && node->operands.size() == 1)
      node = &program_.nodes[program_.values[node->operands.front()].node];
    return node->kind == NodeKind::argument && phases_.trained[node->argument] != 0;
  }

  const Program& program_;
  const std::vector<Rule>& rules_;
  const Phases& phases_;
  const std::vector<std::uint64_t>& numbers_;
  std::vector<int> level_;
  std::vector<int> of_node_;
  std::vector<int> again_;
  std::vector<int> gradient_of_;
  std::vector<int> keys_;
  Groups groups_of_siblings_;
  std::vector<int> sibling_;
  std::unordered_map<int, int> block_by_sibling_;
  std::unordered_map<std::uint64_t, int> block_by_number_;
  std::unordered_map<int, std::vector<int>> forward_by_weight_;
  std::unordered_map<std::uint64_t, std::vector<int>> forward_by_input_;
  std::unordered_map<std::uint64_t, std::vector<int>> by_gradient_;
};

}  // namespace

ContractionFactors contraction_factors(const Node& node, const Rule& rule, int weight_operand) {
  ContractionFactors made;
  if (rule.operands.size() < 2 || rule.outputs.empty()) return made;
  // Of a gather the looked-up rows are the weight; a scatter adds its updates like a gradient.
  const bool scatter = node.is("scatter");
  const int right = scatter ? 2 : weight_operand >= 0 ? weight_operand : node.is("gather") ? 0 : 1;
  const int left = scatter ? 1 : right == 1 ? 0 : 1;
  const std::vector<int> a = flat(rule.operands[left]);
  const std::vector<int> b = flat(rule.operands[right]);
  const std::vector<int> out = flat(rule.outputs.front());
  const auto usable = [&](int f) { return rule.factors[f].kind != FactorKind::replication; };
  for (const int f : a) {
    if (!usable(f)) continue;
    if (!has(out, f)) {
      made.inner.push_back(f);
    } else {
      (has(b, f) ? made.batch : made.rows).push_back(f);
    }
  }
  for (const int f : b) {
    if (!usable(f) || has(a, f)) continue;
    (has(out, f) ? made.columns : made.inner).push_back(f);
  }
  return made;
}

Assignment assign_blocks(const Program& program, const std::vector<Rule>& rules,
                         const Phases& phases, const std::vector<std::uint64_t>& numbers) {
  return Assigner(program, rules, phases, numbers).run();
}

}  // namespace plait::graph
