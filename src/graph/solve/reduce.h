#pragma once

#include "graph/solve/network.h"

namespace plait::solve {

struct ReduceLimits {
  Amount below = kForbidden;      // only answers that cost less are wanted
  int row_window = 256;           // rows that each row is compared with
  std::size_t most_pairs = 4096;  // entries of a link that an elimination may make
};

// Makes the network smaller without losing its least cost below `limits.below`:
// choices that are forbidden, do not fit or are dominated go; a variable with one choice becomes
// node costs; one that follows from a neighbour is merged into it; one without memory and with two
// neighbours becomes a link between them; rows that cannot bind go. Sets `impossible` when nothing
// is left.
void reduce(Network& network, const ReduceLimits& limits);

}  // namespace plait::solve
