#pragma once

#include <random>
#include <span>

#include "second_opinion/sketch.h"

namespace plait::second_opinion {

using Random = std::mt19937_64;

// Changes a sketch at random; false when it cannot be changed in this way. What it leaves need not
// be sound: check_plan() says so.
struct Change {
  const char* name;
  bool (*apply)(const Problem& problem, Sketch& sketch, Random& random);
  bool is_large;  // the units should be balanced anew
  int weight;
};
std::span<const Change> changes();

// Uniform in [least, most].
int pick(Random& random, int least, int most);

// The schedules that the job's framework runs.
std::vector<Schedule> schedules_of(const Problem& problem);

std::vector<int> divisors(int n);

Part& any_part(Sketch& sketch, Random& random);

}  // namespace plait::second_opinion
