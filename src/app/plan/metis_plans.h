#pragma once

#include <span>

#include "app/plan/plan.h"

namespace plait {

// Whether plans are to be the best by Metis' formula: when asked for, and when rows are wanted that
// Metis' program is to cost, the profile is Metis', and neither another planner nor pins nor money
// say otherwise.
bool is_costed_by_metis(const PlanRequest& request);

// Answers such a request.
PlanAnswer plan_by_metis_formula(const PlanRequest& request, const Session& session);

// The plans in the rows of Metis' program, without those that it would stop at: plans with a tensor
// degree or a number of samples that its profile does not have.
ExportedPlans export_measured(const PlanRequest& request, const Problem& problem,
                              std::span<const RankedPlan> plans);

}  // namespace plait
