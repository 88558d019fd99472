#pragma once

#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "io/cluster/catalogue.h"

namespace plait {

struct ClusterOptions {
  std::string clusterfile;  // Metis' JSON that describes the hosts of a hostfile; "" = none
  std::string device;       // the type of every device of a hostfile; "" = not given
  Catalogue catalogue = builtin_catalogue();
};

struct LoadedCluster {
  Cluster cluster;
  std::vector<std::string> warnings;  // what was assumed, one sentence each
};

// What `--cluster` takes: the path of a native JSON file or of a hostfile, the JSON itself, or a
// shorthand ("2xA100-80GB:8+4xV100-16GB:4"). A file of that name wins over a shorthand.
// docs/files.md.
LoadedCluster load_cluster(const std::string& text_or_path, const ClusterOptions& options = {});

// Constants that were measured on one device alone do not hold where several work together: types
// that have the catalogue's take those for clusters.
void take_cluster_constants(Cluster& cluster, const Catalogue& catalogue);

// Between two zones when nothing is said: 50 Gbit/s for all nodes together and 1 ms, as between
// two data centres of one cloud region.
inline constexpr Link kUsualZoneLink = {BytesPerSecond(6.25e9), Seconds(1e-3)};

// "no link between zones 'a' and 'b' is given; assuming 50 Gbit/s and 1 ms"
std::string assumed_zone_link(const std::string& a, const std::string& b);

}  // namespace plait
