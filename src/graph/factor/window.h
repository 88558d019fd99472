#pragma once

#include <cstdint>
#include <vector>

#include "graph/factor/rule_builder.h"
#include "graph/hlo/attributes.h"

namespace plait::graph {

// One dimension of window={...}. Without any of it: one position at a time.
struct Window {
  std::int64_t size = 1;
  std::int64_t stride = 1;
  std::int64_t low = 0;  // padding
  std::int64_t high = 0;
  std::int64_t base_dilation = 1;  // lhs_dilate: so far apart are the elements of the operand
  std::int64_t dilation = 1;       // rhs_dilate: and those of the window
  bool reversed = false;
  friend bool operator==(const Window&, const Window&) = default;
};
std::vector<Window> windows_of(const Instruction& it, int rank);

// Binds the positions of a convolution without groups.
void bind_positions(RuleBuilder& rule, const ConvolutionDims& dims);

}  // namespace plait::graph
