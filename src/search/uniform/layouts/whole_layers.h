#pragma once

#include <vector>

namespace plait {

// Stages that are alike, as far as a bound needs them. Seconds of a step.
struct StagesOfAKind {
  double count = 0;  // of stages
  double layer = 0;  // of one layer, at least
  double head = 0;   // what one of all stages has besides
};

// Stages have whole layers: no step is shorter than the T for which
//   sum of count floor(T / layer) - what the head takes the place of >= layers,
// the head being where it takes least. Known to be at least `low`; from `high` on nothing is asked
// for, and `high` is given where there is none below. Example: 10 layers of 1 s and a head of 1.5 s
// on 4 stages take 3 s, as three stages have 3 layers at most, and the fourth 1.
double least_with_whole_layers(const std::vector<StagesOfAKind>& kinds, int layers, double low,
                               double high);

}  // namespace plait
