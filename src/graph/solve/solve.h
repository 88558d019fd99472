#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/solve/instance.h"

namespace plait::solve {

struct SolveOptions {
  // What may be done, in cells of cost tables: it decides the answer, which is then the same on
  // every machine and for any number of threads.
  std::size_t work = 10'000'000'000;
  int threads = 1;
  std::function<bool()> stop;  // asked often; ends the search at once with what was found
};

struct Solution {
  std::vector<int> choices;  // by node; empty when there is no answer
  Amount cost = 0;
  Amount lower_bound = 0;    // no answer costs less
  std::string reason;        // why there is no answer
  bool proven_none = false;  // there is none, rather than none found
  std::size_t work = 0;      // done

  bool found() const { return !choices.empty(); }
  bool optimal() const { return found() && lower_bound == cost; }
  double gap() const;  // (cost - bound) / cost; 0 for a cost of 0
};

Solution solve(const Instance& instance, const SolveOptions& options);

}  // namespace plait::solve
