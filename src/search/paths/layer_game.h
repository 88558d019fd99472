#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include "search/paths/critical_path.h"

namespace plait {

// A way to divide the layers of a stage among its chunks, and what they take. Times in seconds.
struct LayerDivision {
  std::vector<int> layers;       // of each chunk
  std::vector<double> forward;   // of each chunk, for a micro-batch
  std::vector<double> backward;  // the same
  double finish = 0;             // once a step
  friend bool operator==(const LayerDivision&, const LayerDivision&) = default;
};

// [n]: the ways in which a stage may have n layers; none where it cannot.
using StageDivisions = std::vector<std::vector<LayerDivision>>;

// Layers of one kind that are to be divided among the stages of a pipeline.
struct LayerPipeline {
  struct Stage {
    const StageDivisions* divisions = nullptr;
    double wire = 0;          // of one layer, how long the network of its nodes is busy in a step
    double wire_of_ends = 0;  // the same of what is not a layer, and of hand-overs
  };
  int layers = 0;
  double after = 0;  // what follows all stages
  std::vector<Stage> stages;
};

struct DividedLayers {
  double step = 0;                           // with what follows
  std::vector<const LayerDivision*> stages;  // one of StageDivisions each
};

struct LayerBound {
  double step = HUGE_VAL;            // of all divisions, at least, or `enough`; infinite if none
  std::vector<DividedLayers> found;  // by step
};

// How much work is spent on a bound, and on finding divisions.
struct LayerGameEffort {
  int rounds = 12;
  int halvings = 3;
  int neighbours = 0;  // divisions that are tried beside the best one, in the end
  // Asked again and again; a bound that was cut short holds, but is lower, zero at worst.
  std::function<bool()> stop = [] { return false; };
};

// A bound on the step with layers divided in any way, and good ways to divide them.
//
// A step is as long as the longest path through its tasks, and what a path takes is a sum over
// stages of what their divisions take on it. So is any mean of paths, and for every mean
//   step >= least over all divisions of the sum over stages,
// which dynamic programming over the layers placed finds exactly. The best mean and the best mix of
// divisions are those of a game between paths and divisions, in which each side answers the other's
// mixture: paths by the critical path of mean times, divisions by that dynamic program. Both lists
// grow until neither side has a better answer.
//
// Of the divisions only those matter with which no stage alone takes longer than a step of T: with
// L the least mean of these, every other division takes longer than T, so that no step is shorter
// than min(T, L). T begins as `enough` and is halved towards L.
//
// Example: two stages, three equal layers of 1 s forward and 2 s backward, two micro-batches under
// 1F1B. With n_1 and n_2 layers one path takes 5 n_1 + 3 n_2, another 3 n_1 + 6 n_2; 0.6 of the
// first and 0.4 of the second are 12.6 s for 2, 1 and for 1, 2. With T = 13 the second stage cannot
// have two layers, which take 15 s with the way there and back; 2, 1 is left, and it takes 13 s.
LayerBound bound_layers(StepGraph& graph, const LayerPipeline& pipeline, double enough,
                        const LayerGameEffort& effort);

}  // namespace plait
