#pragma once

#include <functional>

#include "search/space/search.h"
#include "search/space/shortlist.h"

namespace plait {

// Plans of more tasks (stages times micro-batches) take too long to simulate again and again.
inline constexpr double kMostTasks = 3'000;

// Tries the best plans, and those that would be the best without their bubble, under the schedules
// that are not searched themselves (interleaved and, where the framework has them, zero bubble) and
// that memory allows. Nothing when a schedule or the stages are pinned.
void reschedule(const SearchContext& context, const CostEngine& engine, Shortlist& found,
                const std::function<bool()>& stop);

}  // namespace plait
