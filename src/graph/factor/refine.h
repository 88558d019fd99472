#pragma once

#include <vector>

#include "graph/factor/rule.h"

namespace plait::graph {

// Where a dimension is cut into factors by one op (4096 = 32 heads x 128) and not by another, both
// are given the finer cut, and so on through the program, until every value has one list of factors
// a dimension that all rules about it share. A cut that would not nest in others (6 = 2 x 3 and
// 3 x 2) is left out, and the op that wants it cannot be divided there.
// Afterwards rule.operands[i][d] has one factor for each part of the dimension, in the same order
// and of the same sizes for every op that touches the value.
void refine(const Program& program, std::vector<Rule>& rules);

}  // namespace plait::graph
