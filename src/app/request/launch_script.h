#pragma once

#include <string>
#include <vector>

#include "app/request/search_request.h"

namespace plait {

// What a launch script says of the job, where the request does not say otherwise; a warning tells
// what was taken.
void take_launch(const ProblemSource& source, const MegatronLaunch& launch, LoadedProblem& loaded);

// What Megatron-LM overlaps where it is told to only: what the script has no flag for, and a plan
// would use, waits in `framework`. The flags that it lacks, without dashes, which say that a word
// is one of plait's own flags.
std::vector<std::string> take_overlap(const MegatronLaunch& launch, bool sums_gradients,
                                      bool cuts_tensors, Framework& framework);

// The request with the pins of a launch script where it has none of its own.
SearchRequest with_launch(SearchRequest request, const std::optional<MegatronLaunch>& launch);

}  // namespace plait
