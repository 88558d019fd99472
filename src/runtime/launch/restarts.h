#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/plan/plan_json.h"
#include "runtime/launch/launcher.h"
#include "search/space/search.h"

namespace plait::runtime {

// What happens when a rank of a launched run fails: all ranks start again and go on from the last
// checkpoint, with the same plan, or with a new one for the devices that are left.
struct RestartOptions {
  int most = 0;              // restarts, over the whole run
  bool device_lost = false;  // the device of a rank that failed is gone for good
  std::string folder;        // where new plans go; "" = they are not needed
  SearchOptions search;      // of new plans
  // "" or why a plan cannot be executed; the fastest that can is taken.
  std::function<std::string(const Problem& problem, const Plan& plan)> unsupported_reason;
  std::function<void(const std::string& sentence)> tell;  // what happens; may be empty
};

// Exit statuses of ranks that would end in the same way after the next start: the user's input is
// wrong; the training diverges.
inline constexpr int kWrongInputStatus = 2;
inline constexpr int kDiverged = 4;

// launch() with restarts. `command` gives the words of the ranks for a plan file; `options.ranks`
// and `options.command` follow from the plan. Gives how the last start ended.
LaunchOutcome launch_with_restarts(
    LaunchOptions options, const std::string& plan_path, const RestartOptions& restarts,
    const std::function<std::vector<std::string>(const std::string& plan_path)>& command);

// The devices of a plan, ascending: position r is the device of rank r.
std::vector<DeviceId> devices_of_ranks(const Plan& plan);

struct Successor {
  PlanFile file;
  std::vector<int> old_rank;  // by rank: which it was before; -1 = it was none
};

// The best plan that can be executed without the devices of these ranks. InputError, in words for
// people, where there is none.
Successor plan_without_ranks(const PlanFile& before, const std::vector<int>& lost,
                             const RestartOptions& restarts);

}  // namespace plait::runtime
