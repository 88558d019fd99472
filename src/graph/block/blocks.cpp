#include "graph/block/blocks.h"

#include <algorithm>
#include <functional>

#include "graph/block/numbering.h"
#include "graph/hlo/attributes.h"

namespace plait::graph {
namespace {

// What decides how a contraction behaves: sizes and kinds of its factors, and its phase.
std::uint64_t fingerprint_of(const Program& program, const Node& node, const Rule& rule,
                             Phase phase) {
  std::uint64_t hash = mixed(hash_of(node.source->opcode), static_cast<std::uint64_t>(phase));
  const auto tensor = [&](const TensorFactors& factors, int value) {
    hash = mixed(hash, hash_of(program.values[value].shape->type));
    for (const auto& dim : factors) {
      hash = mixed(hash, dim.size());
      for (const int f : dim)
        hash = mixed(mixed(hash, rule.factors[f].size),
                     mixed(static_cast<std::uint64_t>(rule.factors[f].kind), f));
    }
  };
  for (std::size_t i = 0; i < node.operands.size(); ++i) tensor(rule.operands[i], node.operands[i]);
  for (std::size_t i = 0; i < node.outputs.size(); ++i) tensor(rule.outputs[i], node.outputs[i]);
  return hash;
}

// "decoder/layers/mlp" of "jit(step)/jvp(Model)/decoder/layers/mlp/dot_general".
std::string name_for_people(const Program& program, int key) {
  const Instruction& it = *program.nodes[key].source;
  std::string path = op_name(it);
  if (const std::size_t last = path.rfind('/'); last != std::string::npos) path.resize(last);
  std::string out;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string word = path.substr(at, end - at);
    const bool noise = word.find('(') != std::string::npos || word == "while" || word == "body" ||
                       word == "closed_call" || word == "checkpoint" || word == "remat";
    if (!noise && !word.empty()) out += (out.empty() ? "" : "/") + word;
    at = end + 1;
  }
  return out.empty() ? it.name : out;
}

// Numbers the blocks by where their keys stand in the forward pass and drops those without nodes.
void put_in_order(const Program& program, const Assignment& assignment,
                  const std::vector<std::uint64_t>& numbers, Blocks& made) {
  const std::vector<int> level = levels_of(program);
  std::vector<int> used(assignment.key.size(), 0);
  for (const int block : assignment.of_node)
    if (block >= 0) used[block] = 1;
  std::vector<int> order;
  for (std::size_t b = 0; b < assignment.key.size(); ++b)
    if (used[b] != 0) order.push_back(static_cast<int>(b));
  const auto number = [&](int b) {
    return numbers[program.nodes[assignment.key[b]].outputs.front()];
  };
  std::ranges::sort(order, [&](int a, int b) {
    const int la = level[assignment.key[a]];
    const int lb = level[assignment.key[b]];
    return la != lb ? la < lb : number(a) < number(b);
  });
  std::vector<int> place(assignment.key.size(), -1);
  made.blocks.clear();
  for (const int b : order) {
    place[b] = static_cast<int>(made.blocks.size());
    Block block;
    block.key = assignment.key[b];
    block.level = level[block.key];
    made.blocks.push_back(std::move(block));
  }
  made.of_node = assignment.of_node;
  for (int& block : made.of_node)
    if (block >= 0) block = place[block];
}

// Of the dimensions of a block's arguments, those of larger arguments first.
std::vector<int> stored_classes(const Program& program, const std::vector<Rule>& rules,
                                const Blocks& blocks, const Block& block) {
  std::vector<int> arguments;
  for (const int n : block.nodes)
    if (program.nodes[n].kind == NodeKind::argument) arguments.push_back(n);
  std::ranges::stable_sort(arguments, std::greater<>(), [&](int n) {
    return size_of(*program.values[program.nodes[n].outputs.front()].shape).value;
  });
  std::vector<int> stored;
  for (const int n : arguments)
    for (const auto& dim : rules[n].outputs.front())
      for (const int f : dim)
        if (const int cls = blocks.classes[n][f];
            cls >= 0 && std::ranges::find(stored, cls) == stored.end())
          stored.push_back(cls);
  return stored;
}

}  // namespace

Blocks find_blocks(const Program& program, const std::vector<Rule>& rules, const Phases& phases) {
  const std::vector<std::uint64_t> numbers = number_values(program);
  Assignment assignment = assign_blocks(program, rules, phases, numbers);
  Blocks made;
  // The assignment in the blocks' order, so that merging can name blocks by it.
  put_in_order(program, assignment, numbers, made);
  find_classes(program, rules, phases, numbers, assignment, made);
  Assignment ordered{made.of_node, {}, {}, {}};
  for (const Block& block : made.blocks) ordered.key.push_back(block.key);
  if (merge_batched_pairs(program, rules, phases, made, ordered)) {
    put_in_order(program, ordered, numbers, made);
    find_classes(program, rules, phases, numbers, assignment, made);
  }
  for (int n = 0; n < static_cast<int>(program.nodes.size()); ++n) {
    if (made.of_node[n] < 0) continue;
    Block& block = made.blocks[made.of_node[n]];
    block.nodes.push_back(n);
    if (is_contraction(program, program.nodes[n])) block.contractions.push_back(n);
    block.convolves = block.convolves || program.nodes[n].is("convolution");
  }
  for (Block& block : made.blocks) {
    block.name = name_for_people(program, block.key);
    block.stored = stored_classes(program, rules, made, block);
    std::vector<std::uint64_t> prints;
    for (const int n : block.contractions)
      prints.push_back(fingerprint_of(program, program.nodes[n], rules[n], phases.of_node[n]));
    std::ranges::sort(prints);
    block.fingerprint = hash_of("block");
    for (const std::uint64_t print : prints) block.fingerprint = mixed(block.fingerprint, print);
  }
  return made;
}

}  // namespace plait::graph
