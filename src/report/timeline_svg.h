#pragma once

#include <string>

#include "cost/estimate.h"
#include "cost/pipeline/simulator.h"
#include "plan/plan.h"

namespace plait {

// The predicted step as a picture: a row for each stage (the first and last where there are very
// many), a box for each pass, then gradients and update. Passes of one kind that are too narrow to
// be told apart are drawn as one, so that the picture stays small however many micro-batches there
// are. It has its own colours and no script, and may stand inside a page. `trace` is what
// CostEngine::simulate() gave with `estimate`.
std::string timeline_svg(const Plan& plan, const Estimate& estimate, const Trace& trace);

}  // namespace plait
