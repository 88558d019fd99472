// Metis' ranking. The first number is the rank, the cost is in milliseconds.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "export/exporter.h"
#include "export/paper_plans.h"

namespace plait {
namespace {

// "A100" of "A100-80GB".
std::string short_name(const DeviceType& type) { return type.name.substr(0, type.name.find('-')); }

}  // namespace

Exported metis_row(const Problem& problem, const RankedPlan& ranked, int rank) {
  const Plan& plan = ranked.plan;
  if (std::string fault = beyond_the_papers(problem, plan); !fault.empty()) return {"", fault};
  std::vector<int> types;
  for (const DeviceId id : devices_in_order(plan)) {
    const int type = problem.cluster.device(id).type;
    if (!types.empty() && types.back() == type) continue;
    if (std::ranges::find(types, type) != types.end())
      return {"", "devices of one type are not next to each other"};
    types.push_back(type);
  }
  std::vector<std::string> names;
  for (const int type : types) {
    const std::string name = short_name(problem.cluster.device_types[type]);
    std::string lower = name;
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
    names.push_back(fmt::format("<DeviceType.{}: '{}'>", name, lower));
  }
  std::vector<std::size_t> groups;
  std::vector<std::string> strategies;
  for (const Stage& stage : plan.stages) {
    groups.push_back(stage.devices.size());
    strategies.push_back(
        fmt::format("({}, {})", stage.spans.front().data, stage.spans.front().tensor));
  }
  return {fmt::format("{}, {}, ({}{}), [{}], [{}], {}, [{}]\n", rank, 1e3 * ranked.cost.step.value,
                      fmt::join(names, ", "), names.size() == 1 ? "," : "", fmt::join(groups, ", "),
                      fmt::join(strategies, ", "), plan.micro_batches,
                      fmt::join(stage_bounds(plan), ", ")),
          ""};
}

}  // namespace plait
