#pragma once

#include <string>
#include <vector>

#include "app/plan/plan.h"
#include "cli/flags/command.h"

namespace plait {

// Everything that `plait plan` is told.
struct PlanArguments {
  PlanRequest request;
  bool json = false;
  std::string output;
};

// All flags of `plait plan`; other verbs take some of them.
std::vector<FlagGroup> plan_flags(PlanArguments& arguments);

// --objective, --deadline, --budget, --tokens, --steps.
FlagGroup objective_flags(Objective& objective);
// --tokens and --steps of them.
std::vector<Flag> training_flags(Objective& objective);

// The groups without the flags of these names, or with these alone; no group is left empty.
std::vector<FlagGroup> without_flags(std::vector<FlagGroup> groups,
                                     const std::vector<std::string>& names);
std::vector<FlagGroup> only_flags(std::vector<FlagGroup> groups,
                                  const std::vector<std::string>& names);

}  // namespace plait
