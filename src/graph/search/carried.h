#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/analysis.h"
#include "graph/mesh/placement.h"

namespace plait::graph {

// A sharding that the program itself gives a value: an argument, or what a call of Sharding marks.
struct CarriedSharding {
  int value = 0;
  std::string text;  // {devices=[2,1]<=[2]}
  std::string where;
};
std::vector<CarriedSharding> carried_shardings(const Program& program);

// The device that has each tile of {devices=[2,1,4]<=[8]T(0) last_tile_dim_replicate}: tiles in
// order, the copies of a tile together. Nothing for what is not such a text.
struct Tiles {
  std::vector<std::int64_t> counts;  // by dimension of the array
  std::vector<int> devices;
};
std::optional<Tiles> read_sharding(const std::string& text, int rank, int devices);

// Where each value is that has a sharding of its own; nothing for the others. InputError for a
// sharding that no placement on the mesh has.
std::vector<std::optional<Placement>> kept_shardings(const Program& program, const Mesh& mesh);

}  // namespace plait::graph
