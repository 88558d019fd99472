#pragma once

#include <optional>

#include "plan/problem.h"

namespace plait {

// What a plan may use of each device, where the request says so. A limit alone is all that counts:
// no reserve is left below it.
struct MemoryRule {
  std::optional<Bytes> limit;
  std::optional<double> reserve;  // fraction of the device's memory; or:
  std::optional<Bytes> reserved;  // a size

  bool any() const { return limit || reserve || reserved; }
};

void apply(const MemoryRule& rule, Job& job);

// A sentence for each device type that has less than the limit, or nothing left beside the reserve.
std::vector<std::string> memory_warnings(const Cluster& cluster, const Job& job);

}  // namespace plait
