#pragma once

#include <vector>

#include "graph/block/blocks.h"

namespace plait::graph {

// Blocks::yields. Where an array has two ranges of one class, the one that fewer reductions sum
// over is divided, of equal ones the first: each is followed through the ops that have both, so
// that those agree.
std::vector<std::vector<char>> find_yielding(const Program& program, const std::vector<Rule>& rules,
                                             const Blocks& blocks);

}  // namespace plait::graph
