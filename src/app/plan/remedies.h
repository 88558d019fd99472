#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/plan/quick_search.h"
#include "plan/problem.h"
#include "search/space/search.h"

namespace plait {

// One change with which a plan was found.
struct Remedy {
  std::vector<Dimension> without;      // pins to drop, or
  std::optional<Precision> precision;  // another one, or
  std::optional<double> offload;       // of the optimizer state to host memory, or
  int cluster_times = 1;               // as many clusters
  std::string words;                   // "without `tensor` 8"
};

// Pins that are in the way; else changes of job, program or cluster under the pins as they are;
// else such changes without the pins. Every one was found to help.
std::vector<Remedy> remedies_for(const Problem& problem, const Trial& trial);

// False where the cluster is so large already that more devices are not among the changes.
bool tried_larger_machines(const Problem& problem);

}  // namespace plait
