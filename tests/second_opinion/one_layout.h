#pragma once

#include "plan/target.h"
#include "second_opinion/local_search.h"

namespace plait::second_opinion {

// The same opinion on programs with one tensor and one data degree for all stages: annealing over
// such plans alone, hosts and their order, degrees, layers of every chunk, micro-batches, schedule,
// ZeRO and recompute. What why_not() refuses does not count.
std::optional<Opinion> one_layout_opinion(const CostEngine& engine, const Target& target,
                                          const std::vector<Plan>& given, const Options& options);

}  // namespace plait::second_opinion
