#pragma once

#include <string>

#include "io/cluster/load_cluster.h"

namespace plait {

// Clusters in a word:
//   4xA100-80GB:8                    4 nodes of 8
//   H100:8                           1 node of 8
//   12xH100                          12 devices in nodes of the usual size: 8 + 4
//   2xA100-80GB:8+4xV100-16GB:4      a mix
//   4xp4d.24xlarge                   4 cloud instances, with their price and network
//   2xA100-80GB:8/400Gbps            400 Gbit/s out of each node (also 50GBps)
//   2xH100:8@east+2xH100:8@west      two zones, joined by kUsualZoneLink
// Blanks may stand around every sign; '*' is as good as 'x'. InputError names the part that is
// wrong and the field of the request that it is.
LoadedCluster read_cluster_shorthand(const std::string& text, const Catalogue& catalogue,
                                     const std::string& flag = "`cluster`");

}  // namespace plait
