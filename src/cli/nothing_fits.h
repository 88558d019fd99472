#pragma once

#include <string>

#include "cli/plan_arguments.h"
#include "plan/problem.h"
#include "search/space/search.h"

namespace plait {

// True when the weights and gradients alone exceed the memory of all devices: no need to search.
bool is_hopeless(const Problem& problem);

// Why a search came back without a plan: by how much the nearest one misses, at which stage, and
// what would help. Every remedy that it names was searched for and found to work.
std::string why_nothing_fits(const Problem& problem, const PlanArguments& arguments,
                             const SearchResult& result);

// "stage 2 needs 93.1 GiB and V100-16GB has 15.0 to give: 78.1 too much" for the tightest stage.
std::string shortage(const Problem& problem, const RankedPlan& plan);

}  // namespace plait
