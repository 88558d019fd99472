#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/request/session.h"
#include "graph/analysis.h"
#include "graph/mesh/mesh.h"
#include "graph/search/products.h"
#include "graph/search/search.h"

namespace plait {

// A program, the devices to divide it over, and how to search.
struct GraphSource {
  std::string path;                  // HLO text
  std::string cluster;               // as load_cluster takes it
  std::string mesh;                  // "2x4"; "" = all that the devices make
  std::optional<double> memory_gib;  // of a device; absent = what it has
  int threads = 0;                   // 0 = all cores
  bool whole = false;                // blocks may be done as a whole on every device of an axis
  bool keep_shardings = false;       // that the program carries
  std::string profile;  // what plait graph profile or plait profile wrote; "" = times by formula
};

graph::Analysis load_program(const GraphSource& source, const Session& session);
// The meshes to try: the one that was asked for, or all that the devices make.
std::vector<graph::Mesh> load_meshes(const GraphSource& source, const Session& session);
graph::SearchOptions search_options(const GraphSource& source);
// The same with the times of the source's profile, which must live as long: of blocks and
// collectives of one mesh, which must be among those that were asked for, or of products and
// collectives of one type of device.
struct MeasuredSource {
  std::vector<graph::Mesh> meshes;
  graph::MeasuredBlocks blocks;
  std::unique_ptr<graph::MeasuredProducts> products;
  graph::SearchOptions options() const;
  const GraphSource& source;
};
MeasuredSource load_measured(const GraphSource& source, const Session& session);
int threads_of(int wanted);  // all cores for 0

}  // namespace plait
