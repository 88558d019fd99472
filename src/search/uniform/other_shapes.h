#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "search/uniform/layout_evaluation.h"
#include "search/uniform/near_plans.h"

namespace plait {

using BestByShape = std::map<Shape, RankedPlan>;

// For people to compare with: completes the best plans by shape, so that the `wanted` fastest
// shapes are among them, each with about its best plan. A search for the best plan alone meets
// others by chance. Returns how many plans that costed.
std::int64_t find_other_shapes(const UniformGround& ground,
                               const std::vector<UniformLayout>& layouts, std::size_t wanted,
                               BestByShape& best);

// Whether a layout stands for others that recompute the first layers of every chunk.
bool may_recompute_some(const Space& space, const UniformLayout& layout);

// Plans that are as fast without ZeRO go without.
void drop_idle_zero(const CostEngine& engine, BestByShape& plans);
// So many, best first.
std::vector<RankedPlan> best_of(const BestByShape& plans, std::size_t most);

}  // namespace plait
