#include "app/graph/source.h"

#include <algorithm>
#include <thread>

#include "app/request/request_error.h"
#include "io/cluster/load_cluster.h"
#include "io/format/text_file.h"
#include "io/graph/profile_json.h"
#include "io/graph/sharding_json.h"

namespace plait {

graph::Analysis load_program(const GraphSource& source, const Session& session) {
  graph::Analysis analysis = graph::analyze(read_text_file(source.path), source.path);
  name_by_weights(analysis, read_argument_names(source.path));
  session.warn(analysis.warnings);
  return analysis;
}

std::vector<graph::Mesh> load_meshes(const GraphSource& source, const Session& session) {
  if (source.cluster.empty())
    throw RequestError("cluster", "is missing: name the devices, as in 1xA100-80GB:8");
  const LoadedCluster loaded = load_cluster(source.cluster);
  session.warn(loaded.warnings);
  std::vector<graph::Mesh> meshes;
  if (!source.mesh.empty()) {
    const auto sizes = graph::parse_mesh(source.mesh, "`mesh`");
    meshes.push_back(graph::make_mesh(loaded.cluster, sizes, "`mesh`"));
    return meshes;
  }
  for (const auto& sizes : graph::all_meshes(loaded.cluster.device_count(), graph::kMostAxes))
    meshes.push_back(graph::make_mesh(loaded.cluster, sizes, "`cluster`"));
  return meshes;
}

int threads_of(int wanted) {
  return wanted > 0 ? wanted : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

graph::SearchOptions search_options(const GraphSource& source) {
  graph::SearchOptions options;
  options.threads = threads_of(source.threads);
  options.whole = source.whole;
  options.keep = source.keep_shardings;
  if (source.memory_gib) options.memory = Bytes(*source.memory_gib * 0x1p30);
  return options;
}

graph::SearchOptions MeasuredSource::options() const {
  graph::SearchOptions made = search_options(source);
  if (!blocks.empty()) made.measured = &blocks;
  return made;
}

MeasuredSource load_measured(const GraphSource& source, const Session& session) {
  MeasuredSource loaded{load_meshes(source, session), {}, source};
  if (source.profile.empty()) return loaded;
  GraphProfile profile = read_graph_profile(source.profile);
  std::erase_if(loaded.meshes, [&](const graph::Mesh& m) { return m.sizes != profile.mesh; });
  if (loaded.meshes.empty())
    throw RequestError("profile", "was taken on a mesh of " + graph::text_of(profile.mesh) +
                                      ", which is not one that was asked for");
  loaded.meshes.front().measured = std::move(profile.transfers);
  loaded.blocks = std::move(profile.blocks);
  return loaded;
}

}  // namespace plait
