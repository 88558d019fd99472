#pragma once

#include <vector>

#include "search/uniform/layout_evaluation.h"

namespace plait {

constexpr double kProven = 0.002;  // a gap that is not worth closing

// A layout with a bound that is below the best plan.
struct OpenLayout {
  UniformLayout layout;
  Seconds listed;  // nothing in an order of hosts that is listed is faster
};

// Bounds them in any order of hosts, lowest bound first and `most` at most, as long as that raises
// the lowest of all: not where it would not tell more than is known, or than is wanted.
void raise_lowest(const UniformGround& ground, std::vector<OpenLayout*> open, Seconds wanted,
                  std::size_t most);

// What no mix of nodes undercuts that is not `listed`, by the degrees that its layouts may have.
// Nothing where it was stopped before it knew. Of mixes those of families are added.
Seconds bound_of_families(const UniformGround& ground, UniformLayouts& layouts,
                          std::vector<NodeMix>& mixes, const std::vector<int>& listed,
                          Seconds wanted, std::size_t most);

}  // namespace plait
