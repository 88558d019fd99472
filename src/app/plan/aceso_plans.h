#pragma once

#include "app/plan/plan.h"

namespace plait {

// Whether plans are to be the best by Aceso's formula.
bool is_costed_by_aceso(const PlanRequest& request);

// Answers such a request.
PlanAnswer plan_by_aceso_formula(const PlanRequest& request, const Session& session);

// Where Aceso's tables that the request names lack collectives, which changes of degrees and sums
// of gradients take; for plait's own engine.
std::vector<std::string> missing_collectives(const PlanRequest& request, const Problem& problem);

// The plan that the planner aceso is to start from: none, or what the file of `initial_point` says.
// InputError when it is a configuration of another model or batch.
std::vector<Plan> initial_plans(const PlanRequest& request, const Problem& problem);

}  // namespace plait
