#include "graph/block/phases.h"

#include <algorithm>
#include <array>

#include "graph/block/numbering.h"
#include "graph/hlo/attributes.h"

namespace plait::graph {
namespace {

// Ops that a weight goes through on its way to the op that uses it.
bool carries_weight(const Program& program, const Node& node) {
  constexpr std::array<std::string_view, 8> kOps{
      "transpose", "reshape", "bitcast", "broadcast", "slice", "dynamic-slice", "reverse"};
  if (node.kind != NodeKind::op || node.operands.empty()) return false;
  return is_view(program, node) || std::ranges::find(kOps, node.source->opcode) != kOps.end();
}

class Finder {
 public:
  explicit Finder(const Program& program) : program_(program) {}

  Phases run() {
    const std::size_t count = program_.nodes.size();
    phases_.of_node.assign(count, Phase::forward);
    phases_.weight_operand.assign(count, -1);
    phases_.weight.assign(count, -1);
    phases_.trained.assign(program_.arguments.size(), 0);
    update_.assign(count, 0);
    seen_.assign(count, 0);
    for (int r = 0; r < static_cast<int>(program_.results.size()); ++r) find_update(r);
    find_activations();
    find_weights();
    split();
    return std::move(phases_);
  }

 private:
  const std::vector<std::int64_t>& dims(int value) const { return program_.values[value].dims(); }

  // Walks back from a result through ops on arrays of its own dimensions; where that meets an
  // argument of the same type, the result is its new value and the ops on the way update it.
  void find_update(int result) {
    const int value = program_.results[result];
    std::vector<int> open{program_.values[value].node};
    std::vector<int> walked;
    std::vector<int> met;
    const int round = result + 1;
    seen_[open.back()] = round;
    while (!open.empty()) {
      const int n = open.back();
      open.pop_back();
      const Node& node = program_.nodes[n];
      if (node.kind == NodeKind::argument) {
        met.push_back(node.argument);
        continue;
      }
      const bool stops = node.kind != NodeKind::op || is_contraction(program_, node) ||
                         node.is("reduce") || dims(node.outputs[0]) != dims(value);
      if (stops) continue;
      walked.push_back(n);
      for (const int operand : node.operands) {
        const int source = program_.values[operand].node;
        if (dims(operand) != dims(value) || seen_[source] == round) continue;
        seen_[source] = round;
        open.push_back(source);
      }
    }
    const bool is_array = !dims(value).empty();
    if (met.empty() || walked.empty() || !is_array) return;
    for (const int argument : met) phases_.trained[argument] = 1;
    for (const int n : walked) update_[n] = 1;
  }

  // The argument that a value is, seen through views and slices; -1 for what is computed.
  int argument_of(int value) const {
    const Node* node = &program_.nodes[program_.values[value].node];
    while (node->kind != NodeKind::argument) {
      if (!carries_weight(program_, *node)) return -1;
      node = &program_.nodes[program_.values[node->operands.front()].node];
    }
    return node->argument;
  }

  // Whether weights are those arguments that get new values: at least one of them is multiplied by.
  // Otherwise any argument is, except what stands on the left of another.
  void find_activations() {
    activation_.assign(program_.arguments.size(), 0);
    for (const Node& node : program_.nodes) {
      if (!is_contraction(program_, node) || node.operands.size() < 2) continue;
      const int left = argument_of(node.operands[0]);
      const int right = argument_of(node.operands[1]);
      for (const int argument : {left, right})
        if (argument >= 0 && phases_.trained[argument] != 0) any_trained_ = true;
      if (left >= 0 && right >= 0 && !node.is("gather")) activation_[left] = 1;
    }
  }

  bool is_weight(const Node& node, int operand) const {
    if (node.is("gather") && operand != 0) return false;
    if (node.is("scatter")) return false;
    const int value = node.operands[operand];
    const int argument = argument_of(value);
    if (argument < 0 || !is_floating(program_.values[value].shape->type)) return false;
    if (any_trained_) return phases_.trained[argument] != 0;
    return activation_[argument] == 0 && integers(*node.source, "lhs_batch_dims").empty();
  }

  void find_weights() {
    for (int n = 0; n < static_cast<int>(program_.nodes.size()); ++n) {
      const Node& node = program_.nodes[n];
      if (!is_contraction(program_, node)) continue;
      // The right side wins where both are arguments, as in x W.
      for (int i = std::min<int>(2, static_cast<int>(node.operands.size())) - 1; i >= 0; --i) {
        if (!is_weight(node, i)) continue;
        phases_.weight_operand[n] = i;
        phases_.weight[n] = argument_of(node.operands[i]);
        break;
      }
    }
  }

  void mark_before(int node, std::vector<char>& marks) {
    if (marks[node] != 0) return;
    marks[node] = 1;
    std::vector<int> open{node};
    while (!open.empty()) {
      const int n = open.back();
      open.pop_back();
      for (const int operand : program_.nodes[n].operands) {
        const int source = program_.values[operand].node;
        if (marks[source] != 0) continue;
        marks[source] = 1;
        open.push_back(source);
      }
    }
  }

  // What comes before the first use of some weight is forward. The loss is the scalar result that
  // needs all of that and, of such results, the least besides: norms of gradients need more.
  void split() {
    std::vector<char> forward(program_.nodes.size(), 0);
    std::vector<char> used(program_.arguments.size(), 0);
    for (int n = 0; n < static_cast<int>(program_.nodes.size()); ++n)
      if (const int weight = phases_.weight[n]; weight >= 0 && used[weight] == 0) {
        used[weight] = 1;
        mark_before(n, forward);
      }
    if (!has_backward(forward)) return;
    std::vector<char> best;  // what the loss needs
    std::ptrdiff_t best_count = 0;
    for (const int result : program_.results) {
      const Shape& shape = *program_.values[result].shape;
      const int node = program_.values[result].node;
      if (!shape.dims.empty() || !is_floating(shape.type)) continue;
      std::vector<char> marks(program_.nodes.size(), 0);
      mark_before(node, marks);
      if (!covers(marks, forward)) continue;
      const std::ptrdiff_t count = std::ranges::count(marks, 1);
      if (!best.empty() && count >= best_count) continue;
      best = std::move(marks);
      best_count = count;
      phases_.loss = node;
    }
    for (std::size_t n = 0; n < best.size(); ++n) forward[n] = forward[n] | best[n];
    label(forward);
  }

  // A product of two things that were computed, behind all first uses of weights: a gradient.
  bool has_backward(const std::vector<char>& forward) const {
    bool any_forward = false;
    bool any_gradient = false;
    for (std::size_t n = 0; n < program_.nodes.size(); ++n) {
      if (!is_contraction(program_, program_.nodes[n])) continue;
      any_forward = any_forward || forward[n] != 0;
      any_gradient = any_gradient ||
                     (forward[n] == 0 && phases_.weight[n] < 0 && !program_.nodes[n].is("gather"));
    }
    return any_forward && any_gradient;
  }

  bool covers(const std::vector<char>& marks, const std::vector<char>& forward) const {
    for (std::size_t n = 0; n < marks.size(); ++n)
      if (forward[n] != 0 && marks[n] == 0 && is_contraction(program_, program_.nodes[n]))
        return false;
    return true;
  }

  void label(const std::vector<char>& forward) {
    std::vector<char> computed(program_.nodes.size(), 0);  // some contraction comes before
    for (std::size_t n = 0; n < program_.nodes.size(); ++n) {
      const Node& node = program_.nodes[n];
      computed[n] = is_contraction(program_, node) ? 1 : 0;
      for (const int operand : node.operands)
        if (computed[program_.values[operand].node] != 0) computed[n] = 1;
      if (forward[n] != 0) continue;
      phases_.of_node[n] = update_[n] != 0 || computed[n] == 0 ? Phase::optimizer : Phase::backward;
    }
  }

  const Program& program_;
  Phases phases_;
  std::vector<int> seen_;  // by which result's walk, last
  std::vector<char> update_;
  std::vector<char> activation_;  // of each argument
  bool any_trained_ = false;
};

}  // namespace

std::string_view name_of(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "forward";
    case Phase::backward:
      return "backward";
    case Phase::optimizer:
      return "optimizer";
  }
  return "";
}

Phases find_phases(const Program& program) { return Finder(program).run(); }

}  // namespace plait::graph
