#pragma once

#include <functional>
#include <vector>

#include "search/auto/label_search.h"
#include "search/bound/stage_table.h"
#include "search/space/space.h"

namespace plait {

// Good pipelines at once, for clusters that are too large to search to the end: every pool is cut
// into stages of one option, pools follow each other in some order, and the units are balanced over
// the stages that result. Combinations are ranked by their throughput, and only those are balanced
// that promise to beat the incumbent and seem to have room for the model: either the 16 most
// promising or the rest. Returns the four shortest pipelines.
enum class Promising { most, less };
std::vector<Pipelined> uniform_pool_pipelines(const Space& space, StageTable& table,
                                              Promising which, Seconds incumbent,
                                              const std::function<bool()>& stop);

}  // namespace plait
