#pragma once

#include <functional>
#include <vector>

namespace plait {

// How Metis divides N devices among S stages: groups of powers of two, none smaller than
// max(N / S, S / N) * variance (the quotients rounded down), that add up to N. A single stage takes
// all devices, whether a power of two or not.
struct GroupRules {
  int devices = 1;
  double variance = 1;
  int max_permute_len = 6;
};

// Calls `visit` with every list of group sizes for so many stages, each once, until it gives false.
// Of each multiset, equal groups are fused in pairs, smallest first, until at most max_permute_len
// are left (or nothing is equal); all permutations of what is left are visited. False when stopped.
//   16 devices, 3 stages, variance 0.5: 4,4,8; 4,8,4; 8,4,4
bool for_each_grouping(const GroupRules& rules, int stages,
                       const std::function<bool(const std::vector<int>&)>& visit);

}  // namespace plait
