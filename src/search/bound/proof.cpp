#include "search/bound/proof.h"

#include <algorithm>
#include <cmath>

#include "search/bound/cluster_lower_bound.h"
#include "search/bound/cover/cover_bound.h"
#include "search/bound/cover/replica_needs.h"
#include "search/space/schedules.h"

namespace plait {
namespace {

constexpr double kRoundingOfProof = 1e-9;
constexpr CoverBound::Work kUsualQuestions{
    .fine = false, .questions = 4e5, .precision = 0.005, .of_gap = 0.15};

}  // namespace

bool proves_one_schedule(const SearchContext& context) {
  const Pins& pins = context.options.pins;
  if (pins.pipeline == 1 || !pins.stages.empty()) return true;
  if (pins.schedule) return *pins.schedule == searched_schedule(pins);
  return std::ranges::all_of(context.options.target.schedules, [](Schedule schedule) {
    return schedule == Schedule::gpipe || schedule == Schedule::one_f_one_b;
  });
}

Seconds floor_of_all(const SearchContext& context, const CostEngine& engine, Seconds best,
                     Effort effort) {
  const Cluster& cluster = context.problem.cluster;
  std::vector<int> devices(cluster.device_types.size());
  for (const Device& device : cluster.devices) ++devices[device.type];
  const ClusterLowerBound compute(engine, context.options.pins, context.options.target,
                                  [&] { return context.should_stop(); });
  const Seconds floor = compute.step(devices);
  if (!std::isfinite(floor.value) || floor <= Seconds(0)) return Seconds(0);
  if (floor >= best) return best;
  // Plans are only compared with what is asked for.
  if (effort == Effort::quick || std::isfinite(context.options.cutoff.value)) return floor;
  if (!CoverBound::is_usable(context.problem.model)) return floor;
  const Space space(context.problem, context.options.pins, context.options.target);
  CoverBound bound(engine, space);
  const CoverBound::Work work = effort == Effort::normal ? kUsualQuestions : CoverBound::Work{};
  const auto may_take = [&](int micro_batches, Seconds step) {
    return std::ranges::binary_search(compute.micro_batches(devices, step), micro_batches);
  };
  return bound.step({floor, best}, work, may_take, [&] { return context.should_stop(); });
}

double most_saved_forward(const SearchContext& context, const CostEngine& engine) {
  const Space space(context.problem, context.options.pins, context.options.target);
  if (!context.options.target.recompute_by_stage || space.recomputes().size() == 1) return 0;
  const UnitMixes kinds_of_units(context.problem.model.units);
  ReplicaNeeds needs(engine, space, kinds_of_units);
  double most = 0;
  for (ReplicaKind& kind : needs.kinds())
    for (int count = 0; count < std::ssize(needs.counts()); ++count)
      most = std::max(most, needs.saved_forward(kind, count));
  return most;
}

void keep_what_is_proven(const SearchContext& context, const CostEngine& engine,
                         SearchResult& result) {
  if (!result.lower_bound || result.plans.empty()) return;
  const Seconds best = result.plans.front().cost.step;
  const bool holds = *result.lower_bound <= (1 + kRoundingOfProof) * best;
  if (result.searched_whole_space && !result.left_space) return;
  if (proves_one_schedule(context) && holds && !result.left_space) {
    *result.lower_bound = (1 - most_saved_forward(context, engine)) * *result.lower_bound;
    return;
  }
  const Seconds floor =
      result.floor ? *result.floor : floor_of_all(context, engine, best, Effort::quick);
  result.lower_bound.reset();
  if (!(floor > Seconds(0))) return;
  result.lower_bound = std::min(best, floor);
  result.bounds_every_plan = true;
}

}  // namespace plait
