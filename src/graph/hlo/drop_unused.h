#pragma once

#include "graph/hlo/program.h"

namespace plait::graph {

// Leaves out the nodes that no result needs.
void drop_unused(Program& program);

}  // namespace plait::graph
