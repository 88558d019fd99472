#pragma once

#include <string>
#include <vector>

#include "graph/search/pins.h"

namespace plait::graph {

// An operand that comes from outside of a piece, and where its op wants it.
struct PieceInput {
  std::string tag;
  int operand = 0;
  int value = 0;
  Placement placement;
};

// Ops of the traced program that run equally often.
struct PiecePart {
  double trips = 1;
  std::vector<std::string> tags;
};

// A block under one of its strategies, to be compiled and timed alone: its values are pinned as in
// a plan, what it takes from other blocks is where it wants it.
struct Piece {
  std::vector<PiecePart> parts;
  Pins pins;
  std::vector<PieceInput> inputs;
};

// Nothing in `parts` where the program carries no tags.
Piece piece_of(const Analysis& analysis, const Mesh& mesh, const GraphCosts& costs, int block,
               std::size_t strategy);

}  // namespace plait::graph
