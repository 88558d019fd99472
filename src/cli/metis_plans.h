#pragma once

#include <span>
#include <string>

#include "cli/peer_rows.h"
#include "cli/plan_arguments.h"

namespace plait {

// --cost-model: whose step time is to be the least. "" = not said.
Flag cost_model_flag(std::string& into);

// Whether plans are to be the best by Metis' formula: when asked for, and when rows are wanted that
// Metis' program is to cost, the profile is Metis', and neither another planner nor pins nor money
// say otherwise.
bool is_costed_by_metis(const PlanArguments& arguments, const std::string& format,
                        const std::string& cost_model);

// Takes out the rows of plans that Metis' program stops at, for want of a measurement: of a profile
// of Metis', those whose tensor degree or samples it does not have. `rows` are of these plans.
void leave_out_unmeasured(const PlanArguments& arguments, const Problem& problem,
                          std::span<const RankedPlan> plans, PeerRows& rows);

// `plait plan --cost-model metis`: searches and prints; gives the exit code.
int plan_by_metis_formula(PlanArguments arguments, LoadedProblem loaded, const std::string& format);

}  // namespace plait
