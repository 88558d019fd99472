#include "graph/block/numbering.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "graph/hlo/attributes.h"

namespace plait::graph {
namespace {

std::vector<std::int64_t> without_ones(const std::vector<std::int64_t>& dims) {
  std::vector<std::int64_t> out;
  std::ranges::copy_if(dims, std::back_inserter(out), [](std::int64_t d) { return d != 1; });
  return out;
}

// Attributes that say what is computed; names of computations and notes are left out.
bool matters(const std::string& key) {
  constexpr std::array<std::string_view, 14> kNotes{"metadata",
                                                    "sharding",
                                                    "frontend_attributes",
                                                    "backend_config",
                                                    "to_apply",
                                                    "calls",
                                                    "body",
                                                    "condition",
                                                    "called_computations",
                                                    "branch_computations",
                                                    "select",
                                                    "scatter",
                                                    "control-predecessors",
                                                    "origin"};
  return std::ranges::find(kNotes, key) == kNotes.end();
}

class Numberer {
 public:
  explicit Numberer(const Program& program)
      : program_(program), number_(program.values.size(), 0) {}

  std::vector<std::uint64_t> run() {
    for (int n = 0; n < static_cast<int>(program_.nodes.size()); ++n) visit(n);
    return std::move(number_);
  }

 private:
  std::uint64_t operand(const Node& node, std::size_t i) const { return number_[node.operands[i]]; }

  void visit(int n) {
    const Node& node = program_.nodes[n];
    if (is_view(program_, node)) {
      number_[node.outputs.front()] = operand(node, 0);
      return;
    }
    const std::uint64_t hash = hash_node(n, node);
    for (std::size_t o = 0; o < node.outputs.size(); ++o) number_[node.outputs[o]] = mixed(hash, o);
  }

  std::uint64_t hash_node(int n, const Node& node) {
    switch (node.kind) {
      case NodeKind::argument:
        return mixed(hash_of("argument"), node.argument);
      case NodeKind::loop_enter:
        return mixed(mixed(mixed(hash_of("enter"), node.loop), operand(node, 0)),
                     carried_[node.loop]++);
      case NodeKind::loop_exit:
        return mixed(hash_of("exit"), operand(node, 0));
      case NodeKind::join:
      case NodeKind::op:
        break;
    }
    if (node.is("dynamic-slice") && node.loop >= 0) return slice_in_loop(node);
    return hash_op(n, node);
  }

  // What one loop puts into a stack slice by slice, another takes out.
  std::uint64_t slice_in_loop(const Node& node) {
    const Node& from = source_of(node.operands.front());
    const auto& dims = program_.values[node.outputs.front()].dims();
    if (from.kind == NodeKind::loop_exit) {
      const Node& update = source_of(from.operands.front());
      if (update.is("dynamic-update-slice") &&
          without_ones(program_.values[update.operands[1]].dims()) == without_ones(dims))
        return number_[update.operands[1]];
    }
    std::uint64_t hash = mixed(hash_of("slice"), operand(node, 0));
    for (const std::int64_t dim : dims) hash = mixed(hash, dim);
    return hash;
  }

  const Node& source_of(int value) const {
    const Node* node = &program_.nodes[program_.values[value].node];
    while (is_view(program_, *node))
      node = &program_.nodes[program_.values[node->operands.front()].node];
    return *node;
  }

  std::uint64_t hash_op(int n, const Node& node) {
    const Instruction& it = *node.source;
    std::uint64_t hash = hash_of(it.opcode);
    if (it.opcode == "rng" || it.opcode == "infeed") hash = mixed(hash, n);
    if (it.opcode == "constant") hash = mixed(hash, hash_of(it.literal));
    for (const Attribute& attribute : it.attributes)
      if (matters(attribute.key))
        hash = mixed(mixed(hash, hash_of(attribute.key)), hash_of(attribute.value));
    for (const Called& called : it.called) {
      const Computation& computation = program_.module->computations[called.computation];
      hash = mixed(hash, hash_of(computation.instructions[computation.root].opcode));
    }
    for (const int output : node.outputs)
      for (const std::int64_t dim : program_.values[output].dims()) hash = mixed(hash, dim);
    for (std::size_t i = 0; i < node.operands.size(); ++i) hash = mixed(hash, operand(node, i));
    return hash;
  }

  const Program& program_;
  std::vector<std::uint64_t> number_;
  std::unordered_map<int, int> carried_;  // how many values of a loop were numbered
};

}  // namespace

std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  // splitmix64's finaliser over the sum: any change of a bit reaches all of them.
  std::uint64_t z = hash + 0x9E3779B97F4A7C15ULL * (word + 0x632BE59BD9B4E019ULL);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return mixed(hash, text.size());
}

bool is_view(const Program& program, const Node& node) {
  if (node.kind != NodeKind::op || node.operands.size() != 1 || node.outputs.size() != 1)
    return false;
  const bool copies = node.is("convert") || node.is("copy") || node.is("reduce-precision") ||
                      node.is("reshape") || node.is("bitcast") ||
                      (node.is("custom-call") && custom_call_target(*node.source) == "Sharding");
  return copies && without_ones(program.values[node.operands[0]].dims()) ==
                       without_ones(program.values[node.outputs[0]].dims());
}

bool is_made_anywhere(const Program& program, int value) {
  const Node& node = program.nodes[program.values[value].node];
  if (node.is("broadcast")) return program.values[node.operands.front()].dims().empty();
  return node.is("iota");
}

std::vector<std::uint64_t> number_values(const Program& program) { return Numberer(program).run(); }

std::vector<int> levels_of(const Program& program) {
  std::vector<int> level(program.nodes.size(), 0);
  for (int n = 0; n < static_cast<int>(program.nodes.size()); ++n) {
    const Node& node = program.nodes[n];
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      if (node.kind == NodeKind::loop_enter && i > 0) break;  // from its own body
      level[n] = std::max(level[n], level[program.values[node.operands[i]].node] + 1);
    }
  }
  return level;
}

}  // namespace plait::graph
