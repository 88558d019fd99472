#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/search/strategy.h"

namespace plait::graph {

class MeasuredProducts;

// A collective of a plan and what it is for.
struct Movement {
  Transfer transfer;
  int value = -1;     // that is summed or moved
  int consumer = -1;  // the node that wants it elsewhere, or the argument that it replaces; -1 for
                      // a sum
  double times = 1;   // in a step
  Placement to;       // where it ends
};

// A block's costs under each of its strategies.
struct BlockCosts {
  std::string signature;  // equal for blocks that cost the same, in all programs
  std::vector<Strategy> strategies;
  std::vector<ClassAxes> axes;
  std::vector<Seconds> compute;
  std::vector<Seconds> communication;  // inside the block
  std::vector<Bytes> memory;           // that it holds when the forward pass ends
};

// What two blocks pay for handing each other values, by their strategies.
struct EdgeCosts {
  int a = 0;
  int b = 0;
  std::vector<Seconds> time;  // [strategy of a * strategies of b + strategy of b]
};

struct GraphCosts {
  std::vector<BlockCosts> blocks;
  std::vector<EdgeCosts> edges;
  Seconds shared;  // work that every device does whatever the strategies
  Bytes shared_memory;
  bool whole = false;                          // as CostOptions::whole
  std::vector<std::optional<Placement>> kept;  // of values whose sharding is kept; or nothing

  // Where a value of no block is: whole on every device, or where its sharding says.
  Placement outside(int value) const {
    return kept.empty() ? Placement() : kept[value].value_or(Placement());
  }
};

// Times of blocks that were compiled and run alone, by signature and words of the strategy.
using MeasuredBlocks = std::map<std::pair<std::string, std::string>, Seconds>;

// Times by the roofline of the mesh's device and the collectives of its links; of blocks that were
// measured by that, and of the other strategies of such a block in proportion. Products that were
// measured take the place of their roofline.
struct CostOptions {
  int threads = 1;
  bool whole = false;  // blocks may also be done as a whole on every device of an axis
  bool keep = false;   // shardings that the program carries
  const MeasuredBlocks* measured = nullptr;
  const MeasuredProducts* products = nullptr;
};
GraphCosts costs_of(const Analysis& analysis, const Mesh& mesh, const CostOptions& options = {});

// Whether a node gets a value of its own kind of copy: a shared weight is gathered for the forward
// pass, given up, and gathered again for the backward pass.
bool gathers_again(const Analysis& analysis, const Strategy& of_maker, int value, int node);

// Of what one device does of a node, once; products as they were measured, where they were.
Seconds node_time(const Analysis& analysis, const Mesh& mesh, int node, const NodePlacement& at,
                  const MeasuredProducts* measured);

// All collectives when block b takes strategy choice[b]. Sums of scalars are left out, and a value
// that several blocks want at one place is brought there once: the costs of the edges, which know
// two blocks each, count it for each of them.
std::vector<Movement> movements_of(const Analysis& analysis, const Mesh& mesh,
                                   const GraphCosts& costs, const std::vector<int>& choice);

// The placement of every value under a choice.
std::vector<Placement> placements_of(const Analysis& analysis, const Mesh& mesh,
                                     const GraphCosts& costs, const std::vector<int>& choice);

// A value elsewhere than where it is kept, for the nodes that want it there.
struct Copy {
  int value = 0;
  Placement at;
  int first = 0;  // node that wants it
  int last = 0;
};
std::vector<Copy> copies_of(const Analysis& analysis, const Mesh& mesh, const GraphCosts& costs,
                            const std::vector<int>& choice,
                            const std::vector<Placement>& placements);

// The most bytes that a device holds at any moment of the program, in the order of its text, with
// arguments that are given up used again for the results that replace them.
Bytes peak_memory(const Analysis& analysis, const Mesh& mesh,
                  const std::vector<Placement>& placements, const std::vector<Copy>& copies);

}  // namespace plait::graph
