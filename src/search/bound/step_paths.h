#pragma once

#include <vector>

namespace plait {

// What a stage counts for on a path through the task graph of a step, per second of each of its
// times.
struct PathWeights {
  double time = 0;     // forward and backward of a micro-batch
  double forward = 0;  // the forward pass alone
  double longer = 0;   // the longer one of the two
  double finish = 0;   // gradients and weights
  double closing = 0;  // the same, of the first stage only
  double in = 0;       // half of a hand-over there and back, from the stage in front
  double out = 0;      // the same, to the stage after it
  double each = 0;     // of every stage there is, in units of the most that a stage may take

  PathWeights& operator+=(const PathWeights& other);
  friend PathWeights operator*(double weight, PathWeights part);
};

// A path that stands out at one stage, the pivot.
struct PivotPath {
  int pivot = 0;
  PathWeights before;
  PathWeights at;
  PathWeights after;
};

// How many stages there are: fewer than micro-batches, or not. GPipe has the same paths in both
// cases.
enum class PathFamily { filled, filling, gpipe };

// Paths through the task graph: every step is at least as long as each of them. Pivots are stages
// in pipeline order, some of which may be the same stage; the first is the slowest. With L and F
// the round trip and the way forward through the stages before a pivot of x seconds, R the round
// trip through those after it, and k stages from it to the end:
//   L + m x                        it has all micro-batches to do
//   F + m x + finish               and then its gradients to sum
//   L + 2 R + (m - k + 1) x        filled: the first micro-batch is back before it goes on
//   L + R + x + (m - 1) max(f, b)  filling: all of one kind of pass, and the way back
//   L + R + m x                    gpipe
// L ends with the finish of the first stage.
std::vector<PivotPath> step_paths(PathFamily fill, double micro_batches, int pivots);

}  // namespace plait
