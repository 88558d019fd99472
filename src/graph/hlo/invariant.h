#pragma once

#include <map>
#include <utility>
#include <vector>

#include "graph/hlo/program.h"

namespace plait::graph {

// What is known while the names of values that are handed on are still in the program.
struct HandedOn {
  const std::vector<std::pair<int, int>>& from;     // of each value: (what was handed on, barrier)
  const std::map<int, std::vector<int>>& barriers;  // what the node of each barrier is given
  const std::vector<char>& stays;                   // nodes of branches of conditionals
};

// Sets Node::runs_in: what depends on nothing that a loop changes is computed before the loop, with
// what it sends, as compilers do. What a barrier in the loop gives depends on all that it is given.
void find_invariant(Program& program, const HandedOn& handed);

}  // namespace plait::graph
