#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plait::solve {

using Amount = std::int64_t;  // a cost, or bytes of memory

// A cost at or above this one means "not allowed"; the contest's files write it as 10^18.
inline constexpr Amount kForbidden = 1'000'000'000'000'000'000;

// One tensor of a program. It lives in the half-open interval [begin, end) of time points and takes
// usage[k] of memory at each of them when its choice is k. An interval with end <= begin is empty.
struct Node {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::vector<Amount> cost;   // of each choice, >= 0
  std::vector<Amount> usage;  // of each choice, >= 0
};

// What a pair of choices costs: cost[i * choices of second + j].
struct Edge {
  int first = 0;
  int second = 0;
  std::vector<Amount> cost;
};

// The contest form of intra-operator sharding (ASPLOS 2025 / EuroSys 2025, IOPDDL): one choice a
// node, least sum of node and edge costs, and at no time more memory than the limit.
struct Instance {
  std::string name;
  std::vector<Node> nodes;
  std::vector<Edge> edges;
  Amount usage_limit = 0;
};

struct Score {
  Amount cost = 0;    // kForbidden where a choice or a pair is not allowed
  Amount peak = 0;    // the most memory at any time
  bool fits = false;  // peak <= limit
  bool valid() const { return fits && cost < kForbidden; }
};

// Counts a complete answer from the instance alone; shares nothing with the solver.
Score score(const Instance& instance, const std::vector<int>& choices);

}  // namespace plait::solve
