#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/problem.h"
#include "search/space/pins.h"

namespace plait::monotone {

struct Pinned {
  std::string words;  // "--tp 4"
  Pins pins;
};

// One dimension at a time, each with the values that make sense on so many devices; those that no
// plan of the target can have are left out.
std::vector<Pinned> every_pin(const Problem& problem, const Target& target);

// All that the plan is, but for hosts and cuts.
Pinned pins_like(const Problem& problem, const Plan& plan);

// Gives the job number formats and kernels that the program and all devices have.
void adapt(Problem& problem, const Target& target);

// The hosts in another order, with their devices.
Cluster with_hosts_in_another_order(const Cluster& cluster, std::uint64_t seed);

}  // namespace plait::monotone
