#pragma once

#include <vector>

#include "search/clusters/replan.h"

namespace plait {

// The change, with more devices left out of nodes that lost some, or of all nodes: as many stay in
// each as tensor groups of two or a power of two fill. For programs that use all devices of a node
// or none: 3 nodes of 7 and one of 8 share few degrees, 4 nodes of 6 share many.
std::vector<ClusterChange> with_fewer_devices(const Cluster& before, const ClusterChange& change);

}  // namespace plait
