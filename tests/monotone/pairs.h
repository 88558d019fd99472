#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/problem.h"
#include "search/space/search.h"

namespace plait::monotone {

// One side of a comparison.
struct Side {
  Problem problem;
  Pins pins{};
  Effort effort = Effort::normal;
  Target target{};
  bool as_drawn = true;  // the same for all pairs of a seed
};

// Two problems of which one cannot be slower: every plan of `worse` is one of `better`, or has one
// like it there.
struct Pair {
  std::string kind;   // "one more node"
  std::string words;  // the problem, and what is different
  Side worse;
  Side better;
  double scale = 1;  // of the step of `worse`: what `better` may take
};

// How a random problem is made better off; a pair for each way. The plans are those of the target.
std::vector<Pair> pairs_of(std::uint64_t seed, int most_devices, const Target& target = {});

// A random problem whose devices have so little memory that plans recompute layers, searched with
// all layers of a stage alike and with each by itself.
Pair recompute_pair(std::uint64_t seed, int most_devices, const Target& target = {});

// The best plan; nothing when none fits.
std::optional<RankedPlan> best_plan(const Side& side);
// Its step; infinite when nothing fits.
Seconds best_step(const Side& side);

// By how much the side that is better off is slower, relative; at most 0 where all is well.
double excess(Seconds worse, Seconds better, double scale);

// What is more than this is a failure.
inline constexpr double kTolerance = 0.005;

}  // namespace plait::monotone
