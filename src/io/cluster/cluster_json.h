#pragma once

#include <string>

#include "io/cluster/load_cluster.h"
#include "io/format/json_reader.h"

namespace plait {

// The native cluster file, {"plait_cluster": 1, "nodes": [..], ..}; docs/files.md describes every
// key. Also reads a cluster that is a part of a larger document (a saved plan).
LoadedCluster read_cluster_json(const JsonValue& root, const Catalogue& catalogue);

// The cluster as a native file that needs no catalogue: all device types are written out. Reading
// it gives an equal cluster.
std::string cluster_to_json(const Cluster& cluster);

}  // namespace plait
