#pragma once

#include <vector>

#include "cost/engine.h"

namespace plait {

// The longest path of a step that was simulated, and what a layer more or less in some chunk does
// to it: about, since the layers of a stage need not be alike. A step with other layers is about as
// long at least as each path that is known, with these layers.
//
// Example: a path passes the first of two chunks five times with 1 s of each layer, the other chunk
// twice: with a layer moved from the first to the second it is 3 s shorter, and no step is that
// much shorter than the path of another plan lets it be.
struct LearnedPath {
  std::vector<int> layers;   // of every chunk, in execution order
  double length = 0;         // of the step with them
  std::vector<double> gain;  // of a layer more, by chunk

  double with(const std::vector<int>& other) const;
};

// `trace`: of the plan's simulation, with events; `cost`: what it took.
LearnedPath learned_path(const Plan& plan, const std::vector<int>& layers, const Estimate& cost,
                         const Trace& trace);

}  // namespace plait
