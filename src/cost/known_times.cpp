#include "cost/known_times.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "cost/layer/measured.h"

namespace plait {
namespace {

// By device type and unit, the degrees at which it was measured.
using Degrees = std::map<std::pair<std::string, std::string>, std::set<int>>;

Degrees degrees_of(const Profile& profile) {
  Degrees degrees;
  for (const auto& [key, sample] : profile.compute)
    if (!sample.out_of_memory) degrees[{key.device_type, key.unit}].insert(key.tensor);
  return degrees;
}

}  // namespace

std::optional<std::set<int>> measured_degrees(const Problem& problem,
                                              const std::string& device_type) {
  std::optional<std::set<int>> common;
  Degrees degrees;
  for (const LayerKind& kind : problem.model.kinds) {
    if (!is_only_measured(kind)) continue;
    if (!common) degrees = degrees_of(problem.profile);
    const std::set<int>& own = degrees[{device_type, kind.name}];
    if (!common) common = own;
    std::erase_if(*common, [&](int degree) { return !own.contains(degree); });
  }
  return common;
}

void refuse_unknown_times(const Problem& problem, const Plan& plan) {
  refuse_unknown_times(problem);
  const Model& model = problem.model;
  if (std::ranges::none_of(model.kinds, is_only_measured)) return;
  Degrees degrees = degrees_of(problem.profile);
  for (const Stage& stage : plan.stages)
    for (const Span& span : stage.spans)
      for (int u = span.units.begin; u < span.units.end; ++u) {
        if (!is_only_measured(model.unit(u))) continue;
        const std::string& unit = model.unit(u).name;
        const Device& device = problem.cluster.device(stage.devices.front());
        const std::string& type = problem.cluster.device_types[device.type].name;
        const std::set<int>& own = degrees[{type, unit}];
        if (own.contains(span.tensor)) continue;
        throw InputError(
            model.name,
            fmt::format("{} has no shape and was not measured at tensor degree {} on {}, but at {}",
                        unit, span.tensor, type, fmt::join(own, ", ")));
      }
}

void refuse_unknown_times(const Problem& problem) {
  std::set<std::pair<std::string, std::string>> measured;  // unit, device type
  std::set<int> used;
  for (const Device& device : problem.cluster.devices) used.insert(device.type);
  for (const LayerKind& kind : problem.model.kinds) {
    if (!is_only_measured(kind)) continue;
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
