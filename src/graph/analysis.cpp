#include "graph/analysis.h"

#include "graph/factor/refine.h"
#include "graph/hlo/attributes.h"
#include "graph/hlo/read_text.h"

namespace plait::graph {

Analysis analyze(std::string_view text, const std::string& where) {
  Analysis made;
  made.module = std::make_unique<Module>(read_hlo(text, where));
  made.program = flatten(*made.module);
  made.warnings = made.program.warnings;
  made.rules = rules_of(made.program, made.warnings);
  refine(made.program, made.rules);
  made.phases = find_phases(made.program);
  made.updates = find_updates(made.program, made.phases);
  made.blocks = find_blocks(made.program, made.rules, made.phases);
  made.segments = find_segments(made.program, made.blocks);
  return made;
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
