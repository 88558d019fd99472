#pragma once

#include <random>

#include "plan/problem.h"

namespace plait {

// Small random problems for the oracle and property tests: up to `max_units` uneven units, up to
// `max_devices` devices of up to two types, sometimes with little memory.
Problem random_problem(std::mt19937_64& random, int max_units, int max_devices);

}  // namespace plait
