#pragma once

#include <string>

#include "graph/search/costs.h"

namespace plait {

// What was timed on the devices of a mesh: blocks under their strategies, and collectives.
struct GraphProfile {
  std::vector<int> mesh;
  graph::MeasuredBlocks blocks;
  std::vector<graph::MeasuredTransfer> transfers;
};

// What `plait graph profile` wrote. InputError where it is something else.
GraphProfile read_graph_profile(const std::string& path);

// What the runner is to time: each block that is not the same as one before, under each strategy,
// and the collectives of the mesh. Blocks whose ops carry no tags are left out.
std::string measurement_request(const graph::Analysis& analysis, const graph::Mesh& mesh,
                                const graph::GraphCosts& costs);

}  // namespace plait
