#include "graph/search/signature.h"

#include <map>

#include "graph/block/numbering.h"

namespace plait::graph {

std::uint64_t signature_of(const CostContext& context, int b) {
  const Analysis& analysis = context.analysis;
  const Uses& uses = context.uses;
  const Block& block = analysis.blocks.blocks[b];
  const Program& program = analysis.program;
  std::map<int, int> classes;
  std::map<int, int> loops;
  std::map<int, int> barriers{{-1, 0}};
  std::uint64_t hash = mixed(hash_of("signature"), uses.updates_meet[b]);
  const auto add = [&](std::uint64_t word) { hash = mixed(hash, word); };
  const auto add_class = [&](int cls) {
    add(cls < 0 ? ~0ULL : classes.try_emplace(cls, static_cast<int>(classes.size())).first->second);
  };
  const auto add_fixed = [&](int value) {
    if (context.fixed.empty() || !context.fixed[value]) return;
    for (int a = 0; a < context.mesh.axes(); ++a)
      add(static_cast<std::uint64_t>(context.fixed[value]->dim[a] * 8 +
                                     context.fixed[value]->rank[a]));
  };
  for (const int n : block.nodes) {
    const Node& node = program.nodes[n];
    const Rule& rule = analysis.rules[n];
    add(static_cast<std::uint64_t>(node.kind));
    add(analysis.updates.of_node[n]);
    add(analysis.updates.of_weight[n]);
    add(static_cast<std::uint64_t>(analysis.phases.of_node[n]));
    if (node.kind == NodeKind::op) add(hash_of(node.source->opcode));
    add(static_cast<std::uint64_t>(program.trips(n)));
    add(loops.try_emplace(node.loop, static_cast<int>(loops.size())).first->second);
    for (const Halo& halo : rule.halos) {
      add(std::uint64_t{8} * halo.operand + halo.dim);
      add(static_cast<std::uint64_t>(halo.before));
      add(static_cast<std::uint64_t>(halo.behind));
    }
    for (std::size_t f = 0; f < rule.factors.size(); ++f) {
      add(rule.factors[f].size);
      add(static_cast<std::uint64_t>(rule.factors[f].kind));
      add_class(analysis.blocks.classes[n][f]);
      add(analysis.blocks.yields[n][f]);
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
      const int barrier = program.barrier(n, static_cast<int>(i));
      add(barriers.try_emplace(barrier, static_cast<int>(barriers.size())).first->second);
      const int from = owner_of(analysis, node.operands[i]);
      add(from == b ? uses.place(program, node.operands[i]) : from < 0 ? 1ULL << 40 : 1ULL << 41);
      if (from < 0) add_fixed(node.operands[i]);
    }
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      add_tensor(rule.outputs[o], node.outputs[o]);
      add(context.kept[node.outputs[o]]);
      add_fixed(node.outputs[o]);
    }
  }
  for (const auto& [value, argument] : uses.replacing[b]) {
    add(uses.place(program, value));
    add(owner_of(analysis, argument) == b ? uses.place(program, argument) : 1ULL << 40);
    if (owner_of(analysis, argument) != b) add_fixed(argument);
  }
  add(block.convolves ? 1 : 0);
  for (const Role& role : block.roles) {
    add(hash_of(role.name));
    for (const int cls : role.classes) add_class(cls);
    for (const int start : role.starts) add(static_cast<std::uint64_t>(start));
  }
  return hash;
}

std::uint64_t signature_of(const CostContext& context, const std::vector<int>& first_like,
                           const std::pair<int, int>& pair, const std::vector<Use>& all) {
  const Analysis& analysis = context.analysis;
  const Uses& uses = context.uses;
  const Program& program = analysis.program;
  std::uint64_t hash =
      mixed(mixed(hash_of("edge"), first_like[pair.first]), first_like[pair.second]);
  std::map<int, int> seen;  // values used several times
  std::map<int, int> loops;
  std::map<int, int> barriers{{-1, 0}};
  for (const Use& use : all) {
    hash = mixed(hash, owner_of(analysis, use.value) == pair.first ? 1 : 2);
    hash = mixed(mixed(hash, uses.place(program, use.value)),
                 use.operand < 0 ? (1ULL << 40) + uses.first_output[use.node]
                                 : uses.first_operand[use.node] + use.operand);
    hash = mixed(hash, static_cast<std::uint64_t>(program.trips(program.values[use.value].node)));
    hash = mixed(hash, seen.try_emplace(use.value, static_cast<int>(seen.size())).first->second);
    hash = mixed(hash, static_cast<std::uint64_t>(analysis.phases.of_node[use.node]));
    const int loop = program.entered_loop(use.value, use.node);
    hash = mixed(hash, loops.try_emplace(loop, static_cast<int>(loops.size())).first->second);
    const int barrier = program.barrier(use.node, use.operand);
    hash =
        mixed(hash, barriers.try_emplace(barrier, static_cast<int>(barriers.size())).first->second);
  }
  return hash;
}

}  // namespace plait::graph
