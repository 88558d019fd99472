#pragma once

#include <functional>

#include "plan/plan.h"
#include "search/space/shortlist.h"

namespace plait {

// Moves units over the cuts between neighbouring stages of a plan, one at a time, as long as that
// makes its simulated step shorter: the search cuts by bounds, which do not see all that the
// simulation does. All plans tried are offered to `found`, at most `evaluations`.
void polish(const Plan& plan, Shortlist& found, int evaluations, const std::function<bool()>& stop);

}  // namespace plait
