#pragma once

#include <functional>
#include <vector>

#include "graph/solve/network.h"

namespace plait::solve {

struct RepairOptions {
  std::size_t work = 0;
  int threads = 1;
  std::function<bool()> stop;
};

// Looks for any answer that is allowed and fits, whatever it costs: first one that ignores memory,
// then region after region with less memory in the rows that have too little room. Positions by
// variable; empty when none was found. Adds the work done to `used`.
std::vector<int> find_any(const Network& network, const RepairOptions& options, std::size_t& used);

}  // namespace plait::solve
