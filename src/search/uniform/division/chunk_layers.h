#pragma once

#include <vector>

#include "plan/plan.h"
#include "plan/problem.h"

namespace plait {

// The first units of `chunks` chunks for each stage, in execution order, whose numbers of layers
// differ by one at most. Stages that have least to do get the chunks with one layer more: `last` is
// the work after the last layer, in layers. Empty when there are fewer layers than chunks.
std::vector<int> even_begins(const Model& model, int stages, int chunks, double last);

// The pipeline with its units cut there instead: begins of chunks in execution order.
Plan recut(const Plan& pipeline, Schedule schedule, const std::vector<int>& begins, int units);

}  // namespace plait
