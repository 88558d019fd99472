#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/block/blocks.h"

namespace plait::graph {

// A run of blocks that stands in the program one or more times.
struct Segment {
  int first = 0;  // block
  int count = 1;
  int kind = 0;      // equal for segments that behave alike
  double trips = 1;  // how often a loop runs it in a step
};

struct Segments {
  std::vector<Segment> segments;  // cover the blocks in order
  int kinds = 0;
  bool exact = true;  // no cover has fewer kinds
};

inline constexpr int kLongestSegment = 5;

// Covers a sequence by runs of at most `longest`, with the fewest different runs; of such covers,
// the one whose different runs have the fewest combinations of strategies to try, then the one with
// the fewest runs. Runs do not cross a border: `border[i]` = one ends before element i.
struct Cover {
  std::vector<int> lengths;  // in order
  int kinds = 0;
  bool exact = true;
};
Cover fewest_kinds(std::span<const std::uint64_t> sequence, std::span<const char> border,
                   int longest);

Segments find_segments(const Program& program, const Blocks& blocks);

}  // namespace plait::graph
