#pragma once

#include <vector>

#include "second_opinion/changes.h"

namespace plait::second_opinion {

// Pipelines of equal stages with equal degrees, on all devices in some order and on the devices of
// each type alone; and some with random stages. Not all of them are sound or fit.
std::vector<Sketch> uniform_sketches(const Problem& problem, Random& random);
Sketch random_sketch(const Problem& problem, Random& random);

}  // namespace plait::second_opinion
