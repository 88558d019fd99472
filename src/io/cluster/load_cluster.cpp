#include "io/cluster/load_cluster.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/error.h"
#include "io/cluster/cluster_json.h"
#include "io/cluster/cluster_shorthand.h"
#include "io/cluster/hostfile.h"

namespace plait {
namespace {

constexpr std::string_view kThreeForms =
    "a cluster is a JSON file, a hostfile, or a shorthand such as '2xA100-80GB:8+4xV100-16GB:4' "
    "(nodes x type : devices per node)";

bool exists(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0;
}

// A text that can only be meant as a path.
bool looks_like_path(const std::string& text) {
  return text.starts_with('/') || text.starts_with("./") || text.starts_with("../") ||
         text.starts_with('~') || text.ends_with(".json") || text.ends_with(".txt") ||
         text.ends_with("hostfile");
}

void refuse_host_options(const std::string& name, const ClusterOptions& options) {
  if (!options.clusterfile.empty())
    throw InputError(name, "is JSON; `clusterfile` goes with a hostfile only");
  if (!options.device.empty())
    throw InputError(name, "is JSON; `device` goes with a hostfile only");
}

LoadedCluster from_file(const std::string& path, const ClusterOptions& options) {
  const std::string text = read_text_file(path);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos) throw InputError(path, "is empty");
  const bool json = text[first] == '{' || text[first] == '[' || path.ends_with(".json");
  // "[2001:db8::1] slots=8" is a host, too.
  const bool address = text[first] == '[' && text.find(']', first) < text.find(',', first) &&
                       text.find(':', first) < text.find(']', first) && !path.ends_with(".json");
  if (!json || address) return read_hostfile(path, text, options);
  refuse_host_options(path, options);
  LoadedCluster loaded = read_cluster_json(parse_json(path, text), options.catalogue);
  if (loaded.cluster.name.empty())
    loaded.cluster.name = std::filesystem::path(path).stem().string();
  return loaded;
}

LoadedCluster from_text(const std::string& text, const ClusterOptions& options) {
  refuse_host_options("cluster", options);
  LoadedCluster loaded = read_cluster_json(parse_json("cluster", text), options.catalogue);
  if (loaded.cluster.name.empty()) loaded.cluster.name = "cluster";
  return loaded;
}

LoadedCluster read_cluster(const std::string& text_or_path, const ClusterOptions& options) {
  if (is_json_text(text_or_path)) return from_text(text_or_path, options);
  if (text_or_path == "-" || exists(text_or_path)) return from_file(text_or_path, options);
  if (looks_like_path(text_or_path))
    throw InputError(text_or_path, fmt::format("no such file; {}", kThreeForms));
  if (!options.clusterfile.empty())
    throw InputError(text_or_path, "no such hostfile; `clusterfile` goes with a hostfile only");
  if (!options.device.empty())
    throw InputError(text_or_path, "no such hostfile; `device` goes with a hostfile only");
  return read_cluster_shorthand(text_or_path, options.catalogue);
}

}  // namespace

void take_cluster_constants(Cluster& cluster, const Catalogue& catalogue) {
  for (DeviceType& type : cluster.device_types) {
    const DeviceEntry* entry = lookup_device(catalogue, type.name);
    if (entry == nullptr || !entry->in_clusters || entry->type.efficiency != type.efficiency)
      continue;
    type.efficiency = *entry->in_clusters;
    type.basis = entry->basis_in_clusters;
  }
}

std::string assumed_zone_link(const std::string& a, const std::string& b) {
  return fmt::format("no link between zones '{}' and '{}' is given; assuming {} Gbit/s and {} ms",
                     a, b, kUsualZoneLink.bandwidth.value * 8e-9,
                     kUsualZoneLink.latency.value * 1e3);
}

LoadedCluster load_cluster(const std::string& text_or_path, const ClusterOptions& options) {
  if (text_or_path.empty()) throw InputError("`cluster`", fmt::format("is empty; {}", kThreeForms));
  LoadedCluster loaded = read_cluster(text_or_path, options);
  if (loaded.cluster.device_count() > 1) take_cluster_constants(loaded.cluster, options.catalogue);
  return loaded;
}

}  // namespace plait
