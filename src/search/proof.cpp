#include "search/proof.h"

#include <algorithm>
#include <cmath>

#include "search/bound/cluster_lower_bound.h"
#include "search/space/schedules.h"

namespace plait {
namespace {

constexpr double kRoundingOfProof = 1e-9;

// Whether all plans that were free to choose are under the schedule that is bounded.
bool is_one_schedule(const SearchContext& context) {
  const Pins& pins = context.options.pins;
  if (pins.pipeline == 1 || !pins.stages.empty()) return true;
  if (pins.schedule) return *pins.schedule == searched_schedule(pins);
  return std::ranges::all_of(context.options.target.schedules, [](Schedule schedule) {
    return schedule == Schedule::gpipe || schedule == Schedule::one_f_one_b;
  });
}

}  // namespace

void keep_what_is_proven(const SearchContext& context, const CostEngine& engine,
                         SearchResult& result) {
  if (!result.lower_bound || result.plans.empty()) return;
  const Seconds best = result.plans.front().cost.step;
  const bool holds = *result.lower_bound <= (1 + kRoundingOfProof) * best;
  if (result.searched_whole_space || (is_one_schedule(context) && holds)) return;
  const Cluster& cluster = context.problem.cluster;
  std::vector<int> devices(cluster.device_types.size());
  for (const Device& device : cluster.devices) ++devices[device.type];
  const Seconds floor = ClusterLowerBound(engine, context.options.pins, context.options.target).step(devices);
  result.lower_bound.reset();
  if (!(floor > Seconds(0)) || !std::isfinite(floor.value)) return;
  result.lower_bound = std::min(best, floor);
  result.bounds_every_plan = true;
}

}  // namespace plait
