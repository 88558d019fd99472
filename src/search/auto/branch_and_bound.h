#pragma once

#include <cstdint>
#include <functional>

#include "search/bound/stage_table.h"
#include "search/space/shortlist.h"
#include "search/space/space.h"

namespace plait {

// Every plan of one table whose closed-form bound does not exceed what the shortlist asks for,
// found by building pipelines from the end and cutting off what cannot be good enough; each is
// simulated and offered. True when the whole space was covered, false when `nodes` (counted down)
// or a stop request ended it.
bool branch_and_bound(const Space& space, StageTable& table, Shortlist& found, std::int64_t& nodes,
                      const std::function<bool()>& stop);

}  // namespace plait
