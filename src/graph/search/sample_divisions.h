#pragma once
// Meshes and divisions of programs with one block, for tests of the folder.

#include <optional>
#include <string>
#include <vector>

#include "graph/sample_programs.h"
#include "graph/search/search.h"

namespace plait::graph::samples {

inline Mesh mesh_of(const std::vector<int>& sizes, double bandwidth = 1e9) {
  int devices = 1;
  for (const int size : sizes) devices *= size;
  return make_mesh(cluster_of(devices, bandwidth), sizes, "--mesh");
}

// The program's only block divided as the words say; nothing where that is not offered.
inline std::optional<ShardingPlan> divided(const Analysis& analysis, const Mesh& mesh,
                                           const std::string& words) {
  const GraphCosts costs = costs_of(analysis, mesh);
  for (std::size_t s = 0; s < costs.blocks[0].strategies.size(); ++s)
    if (text_of(costs.blocks[0].strategies[s], analysis.blocks.blocks[0], mesh) == words)
      return plan_with(analysis, mesh, costs, {static_cast<int>(s)});
  return std::nullopt;
}

inline double total_traffic(const ShardingPlan& plan) {
  double sum = 0;
  for (const Bytes bytes : plan.traffic()) sum += bytes.value;
  return sum;
}

}  // namespace plait::graph::samples
