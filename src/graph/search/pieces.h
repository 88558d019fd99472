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

// Whether a piece brings an argument of its block from where it is kept to a node: not into a loop,
// which would do it in every trip.
bool piece_brings(const Analysis& analysis, int value, int node);
// Whether a piece brings what replaces an argument of its block to where that is: not where others
// read it before.
bool piece_replaces(const Analysis& analysis, const std::vector<char>& is_read, int value,
                    int argument);
// Of each value: some node reads it.
std::vector<char> read_values(const Program& program);

// Ops of the traced program that run equally often.
struct PiecePart {
  double trips = 1;
  std::vector<std::string> tags;
};

// A block under one of its strategies, to be compiled and timed alone: its values and its arguments
// are pinned as in a plan, what it takes from other blocks is where it wants it.
struct Piece {
  std::vector<PiecePart> parts;
  Pins pins;
  std::vector<PieceInput> inputs;
};

// Nothing in `parts` where the program carries no tags.
Piece piece_of(const Analysis& analysis, const Mesh& mesh, const GraphCosts& costs, int block,
               std::size_t strategy);

}  // namespace plait::graph
