#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include "plan/plan.h"

namespace plait {

// A pipeline to be cut: what a run of units takes on a stage (infinite when it does not fit), and
// what handing a micro-batch over before a unit adds to the first pass through the pipeline.
struct PartitionProblem {
  int stages = 1;
  int units = 1;
  double micro_batches = 1;
  std::function<double(int stage, const UnitRange& units)> time;
  std::function<double(int stage, int unit)> send;  // between `stage` and the next
  std::function<bool()> stop;
  double longest = HUGE_VAL;  // that a stage may take
};

// The cuts (stages + 1 of them, from 0 to `units`; no stage is empty) with the least
//   sum of times and sends + (micro_batches - 1) * longest time,
// exact: a dynamic programme for the least sum under a limit on the longest stage, repeated with
// the limit just below the longest stage of the last answer until no smaller limit can pay. Time
// O(limits * stages * units^2). Empty when no cut fits, or when stopped.
std::vector<int> least_pipeline_time(const PartitionProblem& problem);

// As many units for each stage as for the others, or one more.
std::vector<int> even_cuts(int units, int stages);

}  // namespace plait
