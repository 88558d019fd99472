#pragma once

#include <string_view>
#include <vector>

#include "graph/factor/rule.h"

namespace plait::graph {

enum class Phase { forward, backward, optimizer };
std::string_view name_of(Phase phase);

// The parts of a training step, found from the program alone. A program that updates none of its
// arguments is all forward.
struct Phases {
  std::vector<Phase> of_node;
  std::vector<char> trained;  // of each argument: a result is its new value
  // Of each node that multiplies by an argument (a weight): which of its operands it is, and which
  // argument; -1 for others.
  std::vector<int> weight_operand;
  std::vector<int> weight;
  int loss = -1;  // the node that makes the loss, where the program returns it
};

Phases find_phases(const Program& program);

}  // namespace plait::graph
