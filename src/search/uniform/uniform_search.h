#pragma once

#include "search/space/search.h"

namespace plait {

// The planner for targets with one tensor and one data degree (Target::one_layout). Their space is
// small: every way to leave nodes out, every set of degrees and settings is listed with a bound and
// looked at, lowest bound first, until no bound is below the best plan.
SearchResult search_uniform(const SearchContext& context);

}  // namespace plait
