#pragma once

#include "graph/solve/network.h"

namespace plait::solve {

// Drops the rows that cannot bind: those with room for the greatest usage of every variable, and
// those that another row implies. Sets `impossible` when a row has less than no room.
void drop_slack_rows(Network& network);

// Row t is implied by row s when sum over v of max over k of (usage_t - usage_s) <= room_t -
// room_s. Each row is compared with at most `window` rows after it.
void drop_implied_rows(Network& network, int window);

}  // namespace plait::solve
