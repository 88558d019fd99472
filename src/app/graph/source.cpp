#include "app/graph/source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <thread>

#include "app/request/request_error.h"
#include "io/cluster/load_cluster.h"
#include "io/format/json_reader.h"
#include "io/format/text_file.h"
#include "io/graph/profile_json.h"
#include "io/graph/sharding_json.h"
#include "io/profile/import_profile.h"
#include "io/profile/profile_json.h"

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
  made.products = products.get();
  return made;
}

namespace {

// What plait profile wrote, or a profile that plait has; nothing for other files.
std::optional<Profile> profile_of_shapes(const std::string& path) {
  if (auto shipped = shipped_profile(path)) return shipped;
  if (!read_json_file(path).find("plait_profile")) return std::nullopt;
  return read_profile_file(path);
}

// Products and collectives of the devices' type.
void take_shapes(const Profile& profile, MeasuredSource& loaded) {
  std::set<std::string> measured;
  for (const auto& [key, sample] : profile.ops) measured.insert(key.device_type);
  for (const auto& [key, curve] : profile.collectives) measured.insert(key.device_type);
  const std::string& type = loaded.meshes.front().device.name;
  const std::string name = measured_name(measured, type);
  if (name.empty())
    throw RequestError("profile", fmt::format("has nothing of {}: what it has is of {}", type,
                                              fmt::join(measured, ", ")));
  Profile named;
  const auto rename = [&](const auto& from, auto& into) {
    for (const auto& [key, what] : from) {
      if (key.device_type != name) continue;
      auto renamed = key;
      renamed.device_type = type;
      into.emplace(renamed, what);
    }
  };
  rename(profile.ops, named.ops);
  rename(profile.collectives, named.collectives);
  loaded.products = std::make_unique<graph::MeasuredProducts>(named, type);
  const auto curves = std::make_shared<const Profile>(std::move(named));
  for (graph::Mesh& mesh : loaded.meshes) mesh.curves = curves;
}

}  // namespace

MeasuredSource load_measured(const GraphSource& source, const Session& session) {
  MeasuredSource loaded{load_meshes(source, session), {}, nullptr, source};
  if (source.profile.empty()) return loaded;
  if (const auto shapes = profile_of_shapes(source.profile)) {
    take_shapes(*shapes, loaded);
    return loaded;
  }
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
