#pragma once

#include "app/request/search_request.h"

namespace plait {

// What a launch script says of the job, where the request does not say otherwise; a warning tells
// what was taken.
void take_launch(const ProblemSource& source, const MegatronLaunch& launch, LoadedProblem& loaded);

// The request with the pins of a launch script where it has none of its own.
SearchRequest with_launch(SearchRequest request, const std::optional<MegatronLaunch>& launch);

}  // namespace plait
