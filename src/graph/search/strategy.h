#pragma once

#include <array>
#include <string>
#include <vector>

#include "graph/analysis.h"
#include "graph/search/placement/placement.h"

namespace plait::graph {

// What devices that have copies of a weight share among them.
enum class Sharing : std::int8_t {
  nothing,
  update,   // gradients are scattered, each keeps a part of the optimizer's state and makes a part
            // of the new weight, which is gathered (ZeRO's first stage)
  weights,  // and each keeps a part of the weight only, gathered for the forward pass and again for
            // the backward pass (ZeRO's third stage)
};

// How a block is divided: for each axis of the mesh one of the block's roles, or none.
struct Strategy {
  std::array<std::int8_t, kMostAxes> role{-1, -1, -1};  // -1: every device along the axis does all
  std::array<std::int8_t, kMostAxes> part{0, 0, 0};  // of the role's classes: the first to divide
  // A divided inner range leaves partial results: they are scattered over the columns, or (false)
  // summed on every device.
  std::array<bool, kMostAxes> scatter{false, false, false};
  Sharing sharing = Sharing::nothing;
  friend auto operator<=>(const Strategy&, const Strategy&) = default;
};

// Those whose axes divide the factors of their roles evenly. That every device of an axis does
// everything is one of them only where it is asked for (`whole`), or where the axis divides nothing
// of the block.
std::vector<Strategy> strategies_of(const Block& block, const Mesh& mesh, bool whole);
// The axes along which a block's weights have copies.
AxisSet copied_axes(const Block& block, const Mesh& mesh, const Strategy& strategy);
// What devices with copies of a block's weights could share: an update where there is a state of
// the optimizer, weights where new ones take the place of old ones.
std::vector<Sharing> sharings_of(const Analysis& analysis, int block);
// "rows over x, columns over y".
std::string text_of(const Strategy& strategy, const Block& block, const Mesh& mesh);

// Which axes divide the factors of each class under a strategy. `first` are the classes of the
// strategy's roles; `second` are the columns, where what a divided inner range leaves is scattered.
struct ClassAxes {
  struct Entry {
    int cls = 0;
    AxisSet first = 0;
    AxisSet second = 0;
  };
  std::vector<Entry> entries;
  const Entry* find(int cls) const;
  // Axes along which an update is shared, and with it the weights or not; and the classes that they
  // divide there: of each array the first that it has. Outer dimensions of weights come first: what
  // is gathered along them lies as it is wanted.
  AxisSet shared = 0;
  bool shares_weights = false;
  std::vector<int> shared_classes;
  // Values that stay where they are whatever the strategy.
  std::vector<std::pair<int, Placement>> fixed;
  const Placement* fixed_of(int value) const;
};
ClassAxes class_axes(const Block& block, const Mesh& mesh, const Strategy& strategy);

// What a node wants and makes under a strategy of its block.
struct NodePlacement {
  std::vector<Placement> operands;
  std::vector<Placement> produced;   // outputs when partial results are summed on every device
  std::vector<Placement> outputs;    // as they are kept
  std::vector<Transfer> reductions;  // of partial results, and what brings them where they are kept
  std::vector<int> reduction_output;  // which output each is of
  std::vector<Transfer> halos;        // what neighbours send of operands
  std::vector<int> halo_operand;      // which operand each is of
  // Products of one array in one place that look through the same window get its borders once, as
  // XLA's partitioner does it. "": these borders are the product's own (a kernel's gradient).
  std::string window;
  double share = 1;  // of the node's work that one device does
};
NodePlacement place_node(const Analysis& analysis, const Mesh& mesh, int node,
                         const ClassAxes& classes);

}  // namespace plait::graph
