#pragma once

#include "graph/solve/network.h"

namespace plait::solve {

// Changes one variable at a time for a lower cost, within the room of all rows, until none helps.
// `position` must fit. Gives the work done, in cells.
std::size_t descend(const Network& network, std::vector<int>& position);

}  // namespace plait::solve
