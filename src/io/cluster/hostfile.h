#pragma once

#include <string>
#include <string_view>

#include "io/cluster/load_cluster.h"

namespace plait {

// The hosts of a DeepSpeed or MPI hostfile ("worker-1 slots=8") or of Metis' two-column form
// ("10.0.0.1 8"); '#' starts a comment, any blanks separate. One node a line, in order.
// What the hosts are comes from options.clusterfile (Metis' JSON) or options.device (all alike).
// A host that appears again is an error, except where it is Metis' way to list several nodes: in
// the two-column form, or with a clusterfile. Such nodes are called "host", "host#2", "host#3".
LoadedCluster read_hostfile(const std::string& path, std::string_view text,
                            const ClusterOptions& options);

}  // namespace plait
