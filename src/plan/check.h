#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"
#include "plan/problem.h"

namespace plait {

struct Violation {
  std::string where;  // "stages[2].devices"
  std::string what;   // "device 5 is already used by stage 1"
};

// Says everything that is wrong with a plan, independently of how it was found or what it costs.
// Shares no code with cost/ or search/, so that it can be used to test them. Memory is not a matter
// of structure and is judged by cost/.
std::vector<Violation> check_plan(const Problem& problem, const Plan& plan);

}  // namespace plait
