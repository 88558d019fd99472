#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"
#include "plan/problem.h"

namespace plait {

// A plan that differs from another in one thing, and that thing in words: "twice the tensor
// degree".
struct Neighbour {
  std::string change;
  Plan plan;
};

// The neighbours of a plan on the same devices and stages that pass check_plan(): other recompute,
// ZeRO stage, schedule, micro-batch size, and tensor against data parallelism.
std::vector<Neighbour> neighbours_of(const Problem& problem, const Plan& plan);

}  // namespace plait
