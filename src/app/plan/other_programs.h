#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/plan/plan.h"

namespace plait {

// Looks, with little work, whether the same training is faster in a way that the request leaves
// open: on plait's own runtime, which may cut every stage in its own way, where devices differ.
// Nothing is said of ways that are not worth it.
std::vector<OtherWay> other_ways(const PlanRequest& request, const PlanAnswer& answer,
                                 const Session& session);

// A layout that the user runs, and what to say of it.
struct SaidLayout {
  Pins open;            // what stays pinned when the layout is left open
  std::string where;    // of another way: "With other degrees"
  std::string request;  // what asks for it
  std::string praise;   // when there is none
  // Flags that a launch script lacks, and the program as it runs with them.
  std::vector<std::string> switches{};
  Framework with_switches{};
};
SaidLayout layout_of_script(const LoadedSearch& loaded);
// Of pins; nothing unless they say tensor degree and stages.
std::optional<SaidLayout> pinned_layout(const Pins& pins, bool said_schedule);

// Another way where an open layout is faster by 1 % or more, and otherwise a remark; and a remark
// where the flags that a launch script lacks make its own plan that much faster.
void judge_layout(const SaidLayout& said, const Session& session, PlanAnswer& out);

// "The best plan runs on Megatron-LM, plait train.", where any program was allowed.
std::string runners_remark(const Problem& problem, const Plan& best);

}  // namespace plait
