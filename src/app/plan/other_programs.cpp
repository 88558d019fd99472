#include "app/plan/other_programs.h"

#include <fmt/format.h>

#include <algorithm>

#include "cost/engine.h"
#include "io/cluster/catalogue.h"
#include "report/plan_tables.h"
#include "runtime/lower/layout.h"
#include "search/bound/cluster_lower_bound.h"

namespace plait {
namespace {

constexpr int kMostDevices = 256;     // of a cluster that is looked at again
constexpr double kWorthwhile = 0.99;  // of the step that is known

std::vector<int> devices_by_type(const Cluster& cluster) {
  std::vector<int> devices(cluster.device_types.size());
  for (const Device& device : cluster.devices) ++devices[device.type];
  return devices;
}

bool is_mixed(const Cluster& cluster) {
  const std::vector<int> devices = devices_by_type(cluster);
  return std::ranges::count_if(devices, [](int n) { return n > 0; }) > 1;
}

// The best plan for another problem on the same cluster that takes less than the limit.
std::optional<RankedPlan> faster_plan(const Problem& problem, SearchOptions options, Seconds limit,
                                      const Session& session) {
  options.keep = 1;
  options.cutoff = limit;
  if (violation_of(problem, options.pins, options.target)) return std::nullopt;
  const CostEngine engine(problem);
  const ClusterLowerBound floor(engine, options.pins, options.target);
  if (floor.step(devices_by_type(problem.cluster)) >= limit) return std::nullopt;
  Session quiet;
  quiet.stop = session.stop;
  SearchContext context = search_context(problem, options, quiet);
  context.engine = &engine;
  const SearchResult found = run_search(planner_named("auto"), context);
  if (found.plans.empty() || found.plans.front().cost.step >= limit) return std::nullopt;
  return found.plans.front();
}

// plait train runs on all of the devices in its number formats.
std::optional<OtherWay> on_own_runtime(const PlanAnswer& answer, const Session& session) {
  const Target& runtime = *target_named("plait");
  Problem problem = answer.problem;
  problem.job.framework = find_framework(builtin_catalogue(), "plait", "framework");
  if (why_not(runtime, problem.job)) return std::nullopt;
  for (const DeviceType& type : problem.cluster.device_types)
    if (!type.supports(compute_dtype(problem.job.precision))) return std::nullopt;
  SearchOptions options = answer.options;
  options.target = runtime;
  options.pins.even_layers = false;
  auto plan =
      faster_plan(problem, options, kWorthwhile * answer.result.plans.front().cost.step, session);
  if (!plan || !runtime::unsupported_reason(problem, plan->plan).empty()) return std::nullopt;
  return OtherWay{"plait's own runtime", "`framework` plait", *std::move(plan)};
}

}  // namespace

std::vector<OtherWay> other_ways(const PlanRequest& request, const PlanAnswer& answer,
                                 const Session& session) {
  std::vector<OtherWay> ways;
  const bool asked = !request.source.runs_on.empty() || !request.source.framework.empty();
  if (asked || !answer.found() || !is_mixed(answer.problem.cluster) ||
      request.objective.needs_prices() || answer.problem.cluster.device_count() > kMostDevices ||
      !answer.options.target.one_layout || request.planner != "auto" ||
      session.stop.stop_requested())
    return ways;
  if (auto way = on_own_runtime(answer, session)) ways.push_back(*std::move(way));
  return ways;
}

}  // namespace plait
