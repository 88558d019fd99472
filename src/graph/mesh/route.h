#pragma once

#include <optional>
#include <vector>

#include "graph/mesh/placement.h"

namespace plait::graph {

// One step of a change of placement. A slice sends nothing.
struct Leg {
  std::optional<Transfer> transfer;
  Placement after;
  friend bool operator==(const Leg&, const Leg&) = default;
};

// The steps that bring an array of `size` bytes from one placement to another, each of which a
// compiler does by one collective:
//   1. an axis that only comes divides what is there already: a slice, as early as possible;
//   2. where only the order of devices differs, they exchange their parts: a permutation;
//   3. an axis that moves to another dimension, from the end of one list of axes to that of
//      another: an all-to-all;
//   4. an axis that stands before one that stays is brought to the end: a permutation;
//   5. an axis that goes away, or is in the way of others: an all-gather, as late as possible.
std::vector<Leg> route(const Mesh& mesh, Bytes size, const Placement& from, const Placement& to);

}  // namespace plait::graph
