#include "graph/analysis.h"

#include <algorithm>
#include <array>
#include <set>

#include "graph/factor/refine.h"
#include "graph/hlo/attributes.h"
#include "graph/hlo/read_text.h"

namespace plait::graph {
namespace {

// What stands between these is written for the part of one device.
bool warn_of_parts(const Program& program, std::vector<std::string>& warnings) {
  for (const Node& node : program.nodes) {
    if (!node.is("custom-call")) continue;
    const std::string target = custom_call_target(*node.source);
    if (target != "xla.sdy.GlobalToLocalShape" && target != "SPMDFullToShardShape") continue;
    bool in_parts = false;
    for (std::size_t i = 0; i < std::min(node.operands.size(), node.outputs.size()); ++i)
      in_parts = in_parts ||
                 program.values[node.operands[i]].dims() != program.values[node.outputs[i]].dims();
    if (!in_parts) continue;
    warnings.push_back(program.module->place(*node.source) +
                       ": a part of this program is divided by hand (shard_map): it is planned as "
                       "what every device does whole; trace the step without, so that it can be "
                       "planned like the rest");
    return true;
  }
  return false;
}

// A program that was divided before is the part of one device.
void warn_of_collectives(const Program& program, std::vector<std::string>& warnings) {
  if (warn_of_parts(program, warnings)) return;
  constexpr std::array<std::string_view, 5> kKinds{"all-reduce", "all-gather", "all-to-all",
                                                   "collective-permute", "reduce-scatter"};
  for (const Node& node : program.nodes) {
    const bool sends =
        node.kind == NodeKind::op && std::ranges::any_of(kKinds, [&](std::string_view kind) {
          return node.source->opcode.starts_with(kind);
        });
    if (!sends) continue;
    warnings.push_back(program.module->place(*node.source) + ": " + node.source->opcode +
                       " shows that this program was divided among devices before; what is planned "
                       "is the part of one of them (XLA dumps the whole as "
                       "...before_optimizations.txt)");
    return;
  }
}

// The argument that is the right side of a product, or the rows that it looks up, seen through ops
// on it alone; -1 for what is computed.
int frozen_weight(const Program& program, int product) {
  const Node& of = program.nodes[product];
  const std::size_t side = of.is("gather") ? 0 : 1;
  if (of.is("scatter") || of.operands.size() <= side) return -1;
  const Node* node = &program.nodes[program.values[of.operands[side]].node];
  while (node->kind == NodeKind::op && !node->operands.empty()) {
    const bool alone = node->operands.size() == 1 || node->is("dynamic-slice");
    if (!alone) return -1;
    node = &program.nodes[program.values[node->operands.front()].node];
  }
  return node->kind == NodeKind::argument ? node->argument : -1;
}

// Ops that the compiler made of one op of the traced program have the tag of that.
std::vector<char> find_transposes(const Program& program) {
  std::vector<char> found(program.nodes.size(), 0);
  for (std::size_t n = 0; n < found.size(); ++n)
    found[n] =
        program.nodes[n].is("transpose") && program.barrier(static_cast<int>(n), 0) < 0 ? 1 : 0;
  const auto tag = [&](int node) {
    const Node& it = program.nodes[node];
    return it.kind == NodeKind::argument ? "" : frontend_attribute(*it.source, "plait");
  };
  for (int n = 0; n < static_cast<int>(found.size()); ++n) {
    for (const int value : program.nodes[n].operands) {
      const int m = program.values[value].node;
      if (found[n] == 0 && found[m] == 0) continue;
      const Node& maker = program.nodes[m];
      const bool one_op = !tag(n).empty() && tag(n) == tag(m);
      const bool known = maker.kind == NodeKind::argument ||
                         (maker.kind == NodeKind::op && (tag(n).empty() || !tag(m).empty()));
      if (one_op || !known || program.nodes[n].loop != maker.loop) found[n] = 0;
      if (one_op) found[m] = 0;
    }
  }
  return found;
}

}  // namespace

Analysis analyze(std::string_view text, const std::string& where) {
  Analysis made;
  made.module = std::make_unique<Module>(read_hlo(text, where));
  made.program = flatten(*made.module);
  made.warnings = made.program.warnings;
  warn_of_collectives(made.program, made.warnings);
  made.rules = rules_of(made.program, made.warnings);
  refine(made.program, made.rules);
  made.phases = find_phases(made.program);
  made.updates = find_updates(made.program, made.phases);
  made.transposes = find_transposes(made.program);
  made.blocks = find_blocks(made.program, made.rules, made.phases);
  made.segments = find_segments(made.program, made.blocks);
  return made;
}

void name_by_weights(Analysis& analysis, const std::vector<std::string>& names) {
  const Program& program = analysis.program;
  const bool fit = names.size() == program.arguments.size();
  for (Block& block : analysis.blocks.blocks) {
    if (block.name != program.nodes[block.key].source->name) continue;
    std::set<int> weights;
    for (const int n : block.contractions)
      if (analysis.phases.of_node[n] == Phase::forward && analysis.phases.weight[n] >= 0)
        weights.insert(analysis.phases.weight[n]);
    std::string out;
    std::string folder;
    for (const int w : weights) {
      const std::string name = fit ? names[w] : argument_name(program, w);
      const std::size_t cut = name.rfind('/') + 1;  // 0 where there is none
      const bool beside = !out.empty() && name.substr(0, cut) == folder;
      out += (out.empty() ? "" : ", ") + (beside ? name.substr(cut) : name);
      folder = name.substr(0, cut);
    }
    if (out.empty())
      if (const int w = frozen_weight(program, block.key); w >= 0)
        out = fit ? names[w] : argument_name(program, w);
    if (!out.empty()) block.name = out;
  }
}

std::string argument_name(const Program& program, int argument) {
  const Instruction& it = *program.nodes[program.arguments[argument]].source;
  std::string name = op_name(it);
  std::string plain;
  for (const char letter : name)
    if (letter != '\\') plain += letter;
  return plain.empty() ? it.name : plain;
}

}  // namespace plait::graph
