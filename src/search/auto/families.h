#pragma once

#include <functional>
#include <vector>

#include "search/auto/label_search.h"
#include "search/bound/stage_menu.h"
#include "search/space/space.h"

namespace plait {

// Good pipelines at once, for clusters that are too large to search to the end: every pool is cut
// into stages of one option, pools follow each other in some order, and the units are balanced over
// the stages that result. Combinations are judged by their throughput first, and only those that
// promise to beat the incumbent and seem to have room for the model are balanced: the few that
// promise most, or the others. The four shortest.
enum class Promising { most, less };
std::vector<Pipelined> families(const Space& space, StageMenu& menu, Promising which,
                                Seconds incumbent, const std::function<bool()>& stop);

}  // namespace plait
