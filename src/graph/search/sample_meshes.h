#pragma once
// Meshes for tests of the search.

#include <vector>

#include "graph/mesh/mesh.h"
#include "graph/sample_programs.h"

namespace plait::graph::samples {

inline Mesh mesh_of(const std::vector<int>& sizes, double bandwidth = 1e9) {
  int devices = 1;
  for (const int size : sizes) devices *= size;
  return make_mesh(cluster_of(devices, bandwidth), sizes, "--mesh");
}

}  // namespace plait::graph::samples
