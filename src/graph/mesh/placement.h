#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "graph/mesh/mesh.h"

namespace plait::graph {

// Which dimension of an array each axis of the mesh divides. Axes that divide the same dimension
// are ordered: rank 0 makes the coarsest parts.
struct Placement {
  std::array<std::int8_t, kMostAxes> dim{-1, -1, -1};  // -1: copies along the axis
  std::array<std::int8_t, kMostAxes> rank{0, 0, 0};
  friend auto operator<=>(const Placement&, const Placement&) = default;

  AxisSet axes() const;
  // The axes of a dimension, the coarsest first.
  std::vector<int> axes_of(int dim) const;
};

// One collective that a change of placement or a partial result needs.
struct Transfer {
  CollectiveKind kind = CollectiveKind::all_reduce;
  AxisSet axes = 0;
  Bytes size;  // as time_of takes it
  friend bool operator==(const Transfer&, const Transfer&) = default;
};

// What brings an array of `size` bytes from one placement to another; route.h has the steps.
std::vector<Transfer> transfers(const Mesh& mesh, Bytes size, const Placement& from,
                                const Placement& to);
Seconds time_of(const Mesh& mesh, const std::vector<Transfer>& all);

// P(None, 'y') of JAX.
std::string partition_spec(const Placement& placement, int rank, int axes);
// {devices=[1,2,4]<=[8] last_tile_dim_replicate} of GSPMD.
std::string gspmd_sharding(const Mesh& mesh, const Placement& placement, int rank);

}  // namespace plait::graph
