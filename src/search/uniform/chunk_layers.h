#pragma once

#include <vector>

#include "plan/plan.h"
#include "plan/problem.h"

namespace plait {

// First units of so many chunks, in execution order, whose numbers of layers differ by one at most.
// The chunks with one more are those of the stages that have least to do: `last` counts what stands
// after the last layer, in layers. Empty when there are fewer layers than chunks.
std::vector<int> even_begins(const Model& model, int stages, int chunks, double last);

// The pipeline with its units cut there instead: begins of chunks in execution order.
Plan recut(const Plan& pipeline, Schedule schedule, const std::vector<int>& begins, int units);

}  // namespace plait
