#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/mesh/placement.h"
#include "graph/search/uses.h"

namespace plait::graph {

// What the costs of blocks depend on besides the block itself.
struct CostContext {
  const Analysis& analysis;
  const Mesh& mesh;
  const Uses& uses;
  const std::vector<std::optional<Placement>>&
      fixed;                      // of values whose sharding is kept; or nothing
  const std::vector<char>& kept;  // of values, until the backward pass
};

// Of everything that the costs of a block depend on: equal for blocks that differ by the layer that
// they belong to. Classes are numbered as they come.
std::uint64_t signature_of(const CostContext& context, int block);

// Of what two blocks hand each other; `first_like` has, of each block, the first that is the same.
std::uint64_t signature_of(const CostContext& context, const std::vector<int>& first_like,
                           const std::pair<int, int>& pair, const std::vector<Use>& uses);

}  // namespace plait::graph
