#include "cost/known_times.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/error.h"

namespace plait {
namespace {

// An op of which only the name, the parameters and how it is cut are known.
bool has_no_shape(const Op& op) {
  Op bare;
  bare.name = op.name;
  bare.kind = op.kind;
  bare.split = op.split;
  bare.parameters = op.parameters;
  bare.cuts = op.cuts;
  return op == bare;
}

}  // namespace

void refuse_unknown_times(const Problem& problem) {
  std::set<std::pair<std::string, std::string>> measured;  // unit, device type
  std::set<int> used;
  for (const Device& device : problem.cluster.devices) used.insert(device.type);
  for (const LayerKind& kind : problem.model.kinds) {
    if (kind.ops.empty() || !std::ranges::all_of(kind.ops, has_no_shape)) continue;
    if (measured.empty())
      for (const auto& [key, sample] : problem.profile.compute)
        measured.emplace(key.unit, key.device_type);
    for (const int type : used) {
      const std::string& name = problem.cluster.device_types[type].name;
      if (measured.contains({kind.name, name})) continue;
      std::set<int> degrees;
      for (const auto& [key, sample] : problem.profile.compute)
        if (key.unit == kind.name) degrees.insert(key.tensor);
      throw InputError(
          problem.model.name,
          fmt::format("{} has no shape and was not measured on {}: times of it are missing at {}",
                      kind.name, name,
                      degrees.empty() ? std::string("every tensor degree")
                                      : fmt::format("tensor degree {}", fmt::join(degrees, ", "))));
    }
  }
}

}  // namespace plait
