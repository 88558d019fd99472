#pragma once

#include <span>
#include <vector>

namespace plait {

// One op of a segment, as far as recompute is concerned.
struct RecomputeOp {
  double time = 0;  // of its forward pass, seconds
  double kept = 0;  // bytes that it keeps for the backward pass
  bool allowed = true;
};

// Which ops of a segment are recomputed. An op's memory is given back when the op after it is
// recomputed as well.
struct RecomputePoint {
  double time = 0;
  double saved = 0;
  double peak = 0;  // bytes of the largest run, which come back while it is recomputed
  std::vector<bool> ops;
};

// The points from which no other saves more in less time per byte: the lower convex hull of all
// 2^n, the first of which recomputes nothing. Found by repeated solution of
//   min time - price * saved
// a dynamic program over the chain, for the price between two neighbouring points.
std::vector<RecomputePoint> recompute_menu(std::span<const RecomputeOp> ops);

}  // namespace plait
