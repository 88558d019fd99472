#pragma once

#include <string>
#include <vector>

#include "app/plan/plan.h"

namespace plait {

// Looks, with little work, whether the same training is faster in a way that the request leaves
// open: on plait's own runtime, which may cut every stage in its own way, where devices differ.
// Nothing is said of ways that are not worth it.
std::vector<OtherWay> other_ways(const PlanRequest& request, const PlanAnswer& answer,
                                 const Session& session);

}  // namespace plait
