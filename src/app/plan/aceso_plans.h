#pragma once

#include "app/plan/plan.h"

namespace plait {

// Whether plans are to be the best by Aceso's formula.
bool is_costed_by_aceso(const PlanRequest& request);

// Answers such a request.
PlanAnswer plan_by_aceso_formula(const PlanRequest& request, const Session& session);

}  // namespace plait
