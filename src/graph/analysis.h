#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/block/blocks.h"
#include "graph/block/phases.h"
#include "graph/block/segments.h"
#include "graph/block/updates.h"
#include "graph/factor/rule.h"
#include "graph/hlo/program.h"

namespace plait::graph {

// Everything that is known about a program before any mesh is.
struct Analysis {
  std::unique_ptr<Module> module;  // the program points into it
  Program program;
  std::vector<Rule> rules;
  Phases phases;
  Updates updates;
  // Of each node: a transpose whose operand and result are both values of the traced program.
  std::vector<char> transposes;
  Blocks blocks;
  Segments segments;
  std::vector<std::string> warnings;
};

// Reads HLO text and finds its blocks and segments. InputError for what is not a program.
Analysis analyze(std::string_view text, const std::string& where);

// Names the blocks that the program says nothing of by the weights that they multiply with:
// "layers/0/wq, wk, wv". `names` are the arguments'; those of the program where they do not fit.
void name_by_weights(Analysis& analysis, const std::vector<std::string>& names);

// The name of an argument: what the program calls it (op_name of the parameter), else its number.
std::string argument_name(const Program& program, int argument);

}  // namespace plait::graph
