#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/plan/largest.h"
#include "app/plan/plan.h"
#include "cli/flags/command.h"

namespace plait {

// Everything that `plait plan` is told.
struct PlanArguments {
  PlanRequest request;
  std::optional<LargestOf> largest;
  bool json = false;
  std::string output;
  std::string log;  // what the search found, and when
};

// All flags of `plait plan`; other verbs take some of them.
std::vector<FlagGroup> plan_flags(PlanArguments& arguments);

// The largest degree that flags may ask for.
inline constexpr int kMaxDegree = 1'000'000;

// --tp, --pp, ..: what the plan must have.
FlagGroup pin_flags(PlanRequest& request);
// Megatron's switches for what plait says with a value; understood, not shown.
FlagGroup borrowed_flags(PlanRequest& request);

// --objective, --deadline, --budget, --tokens, --steps, --goodput.
FlagGroup objective_flags(Objective& objective);
// --tokens, --steps and --goodput of them.
std::vector<Flag> training_flags(Objective& objective);

// --memory-limit and --reserve, --price, --offload; --lora and --freeze.
std::vector<Flag> memory_flags(MemoryRule& rule);
Flag price_flag(std::vector<StatedPrice>& prices);
Flag offload_flag(std::optional<double>& into);
FlagGroup tuning_flags(ProblemSource& source);
// --flash-kernel, --zero-group, --gradient-bytes, ..
FlagGroup software_flags(Job& job);
// --global-batch: samples, or tokens.
Setter into_batch(PlanRequest& request, int most);

// The groups without the flags of these names, or with these alone; no group is left empty.
std::vector<FlagGroup> without_flags(std::vector<FlagGroup> groups,
                                     const std::vector<std::string>& names);
std::vector<FlagGroup> only_flags(std::vector<FlagGroup> groups,
                                  const std::vector<std::string>& names);

}  // namespace plait
