#pragma once

#include <vector>

#include "graph/block/phases.h"

namespace plait::graph {

// What only updates arguments, from the sums of weight gradients on: the gradients themselves, the
// optimizer's state, the new values. Nothing else of the program sees whether devices that have
// copies of a weight do that work once each or share it.
struct Updates {
  std::vector<char> of_node;   // 1: of them
  std::vector<char> is_state;  // of each argument: 1 = updates alone read it
  // 1: an argument whose new value takes its place (a weight), or what is that same array, or a
  // part of it, on the way to its uses.
  std::vector<char> of_weight;
};
Updates find_updates(const Program& program, const Phases& phases);

}  // namespace plait::graph
