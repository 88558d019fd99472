#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "graph/analysis.h"
#include "graph/search/placement/placement.h"

namespace plait::graph {

// One use of a value of another block.
struct Use {
  int value = 0;
  int node = 0;
  int operand = 0;  // -1: the value takes the place of what the node, an argument, gives
};

// What blocks hand each other, and where each node's operands and outputs stand when those of its
// block are written one after the other.
struct Uses {
  std::map<std::pair<int, int>, std::vector<Use>> between;  // (smaller block, larger block)
  // Of each block: results, and the arguments (of the same block, or of none) that they replace.
  std::vector<std::vector<std::pair<int, int>>> replacing;
  // Of each block: another one uses its weights or what its update makes, or makes what these use.
  std::vector<char> updates_meet;
  std::vector<int> first_operand;  // of each node
  std::vector<int> first_output;

  // Where a value stands among the outputs of its block.
  int place(const Program& program, int value) const {
    const Value& v = program.values[value];
    return first_output[v.node] + v.output;
  }
};
Uses find_uses(const Analysis& analysis);

// The block that makes a value; -1 = none.
inline int owner_of(const Analysis& analysis, int value) {
  return analysis.blocks.of_node[analysis.program.values[value].node];
}

// Where the operand of a transpose is when its result is at `to`; nothing for other nodes.
std::optional<Placement> before_transpose(const Analysis& analysis, int value, const Placement& to);

// What is moved when a value is brought to `to`: of a transpose that is where its operand is, the
// operand, so that an array and its transpose are moved once. `at` gives where a value of the same
// block is.
template <typename At>
std::pair<int, Placement> untransposed(const Analysis& analysis, int value, Placement to,
                                       const At& at) {
  while (const std::optional<Placement> wanted = before_transpose(analysis, value, to)) {
    const int given = analysis.program.nodes[analysis.program.values[value].node].operands.front();
    if (owner_of(analysis, given) != owner_of(analysis, value) ||
        before_transpose(analysis, value, at(value)) != at(given))
      break;
    value = given;
    to = *wanted;
  }
  return {value, to};
}

}  // namespace plait::graph
