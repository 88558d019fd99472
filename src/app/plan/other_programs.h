#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/plan/plan.h"

namespace plait {

// Looks, with little work, whether the same training is faster in a way that the request leaves
// open: on plait's own runtime, which may cut every stage in its own way, where devices differ;
// with adapters in the default's program. Nothing is said of ways that are not worth it. Of what
// the default's program has no flags for, PyTorch's is told, even where it is slower.
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
// Of pins; nothing unless they say tensor degree and stages, or, of a program without them, how
// large micro-batches are and what is cut or recomputed.
std::optional<SaidLayout> pinned_layout(const Pins& pins, bool said_schedule, const Target& target);

// Another way where an open layout is faster by 1 % or more, and otherwise a remark; and a remark
// where the flags that a launch script lacks make its own plan that much faster.
void judge_layout(const SaidLayout& said, const Session& session, PlanAnswer& out);

// Why `plait export` cannot write files for the program that the best plan is of; "" where it can,
// and where it never does.
std::string no_files_remark(const PlanAnswer& answer);

// "The best plan runs on Megatron-LM, plait train.", where any program was allowed.
std::string runners_remark(const Problem& problem, const Plan& best);

}  // namespace plait
