#pragma once

#include <vector>

#include "graph/analysis.h"

namespace plait::graph {

// Of each value: 1 where it is held when the forward pass ends: arguments, and what the forward
// pass made and a later pass uses. Values inside of loops come and go.
std::vector<char> kept_until_backward(const Analysis& analysis);

// Of each value outside of loops: the node that uses it last, -1 where nothing does; results are
// used until the end.
std::vector<int> last_uses(const Analysis& analysis);

}  // namespace plait::graph
