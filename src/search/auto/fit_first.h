#pragma once

#include <functional>
#include <optional>

#include "search/auto/label_search.h"
#include "search/bound/stage_table.h"
#include "search/space/space.h"

namespace plait {

// A pipeline that fits where hardly any does, however slow it is: a beam over suffixes of
// pipelines, in which every stage takes as many units as it can hold, and those suffixes are
// followed that leave the most room for each unit that is still open. Nothing when the beam finds
// none; that proves nothing.
std::optional<Pipelined> fit_first(const Space& space, StageTable& table,
                                   const std::function<bool()>& stop);

}  // namespace plait
