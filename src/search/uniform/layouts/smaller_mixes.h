#pragma once

#include <optional>
#include <vector>

#include "search/uniform/layouts/uniform_layouts.h"

namespace plait {

struct BoundedMix {
  int mix = 0;    // position among the mixes
  Seconds bound;  // no plan of it is faster
};

// What no plan on any part of this mix undercuts.
Seconds least_step(const SearchContext& context, const std::vector<NodeKind>& kinds,
                   const NodeMix& mix);

// The mixes but the first one that have layouts and whose devices could compute a step in less than
// the limit, in their order. Nothing once the search is to stop.
std::optional<std::vector<BoundedMix>> smaller_mixes(const SearchContext& context,
                                                     const std::vector<NodeKind>& kinds,
                                                     const std::vector<NodeMix>& mixes,
                                                     const UniformLayouts& layouts, Seconds limit);

}  // namespace plait
