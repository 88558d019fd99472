#pragma once

#include <string>
#include <vector>

#include "graph/search/search.h"

namespace plait::graph {

// A value of the traced program, by the tag of the op that makes it, and where the plan keeps it.
struct PinnedValue {
  std::string tag;
  int result = 0;
  bool enters = false;  // of a loop: what its body begins with, not what the loop gives
  int value = 0;        // of the program
  // From where the op makes it, with partial results summed, to where it is kept. A compiler that
  // knows only the end may divide the op otherwise.
  std::vector<Placement> route;
};

// An operand that its op wants elsewhere than where the value is kept, and the steps to there.
struct PinnedUse {
  std::string tag;  // of the op
  int operand = 0;
  int region = -1;  // of a loop or a conditional: the operand of what this region of it ends with
  int value = 0;
  std::vector<Placement> route;
  // Moved a second time, for the backward pass: the route begins with where it is kept.
  bool again = false;
  // What is moved in the place of the operand, which is that or a transpose of it; -1 = the
  // operand. Dimension d of the operand is dimension permutation[d] of that.
  int moved = -1;
  std::vector<std::int64_t> permutation{};
};

// What the runner writes into a program that carries tags (frontend_attributes={plait="main:118"}).
// Ops of a function that is called several times are left out where the calls do not agree.
struct Pins {
  std::vector<PinnedValue> values;
  std::vector<PinnedUse> uses;
};
Pins pins_of(const Analysis& analysis, const GraphCosts& costs, const ShardingPlan& plan);

// Where each leaf of the result is, and the steps to there from where its op keeps it: what
// replaces an argument is where the argument is.
struct PlacedResult {
  Placement at;
  std::vector<Placement> route;
};
std::vector<PlacedResult> placed_results(const Analysis& analysis, const ShardingPlan& plan);

// The program's text with the plan as sharding attributes of GSPMD on every instruction that the
// plan divides, shardings that were there replaced.
std::string annotated_hlo(const Analysis& analysis, const ShardingPlan& plan);

}  // namespace plait::graph
