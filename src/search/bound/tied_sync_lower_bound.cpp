#include "search/bound/tied_sync_lower_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "cost/comm/collectives.h"
#include "cost/framework/framework.h"

namespace plait {

TiedSyncLowerBound::TiedSyncLowerBound(const Space& space, std::span<const StageOption> options)
    : space_(space) {
  const Model& model = space.problem().model;
  for (const Tie& tie : model.ties)
    if (tie.first == 0 && tie.second == model.unit_count() - 1 && tie.second > 0 &&
        is_trained(space.problem(), tie))
      parameters_ += tie.parameters;
  if (space.pools_share_nodes()) parameters_ = 0;
  if (!any()) return;
  // Takes begin at multiples of what divides all takes and their alignment.
  std::vector<int> step;
  for (const Pool& pool : space.pools()) step.push_back(pool.per_node);
  const auto aligned = [&](const StageOption& option, int p) {
    return std::min(option.tensor, space.pools()[p].per_node);
  };
  for (const StageOption& option : options)
    for (const Take& take : option.takes) step[take.pool] = std::gcd(step[take.pool], take.devices);
  for (const StageOption& option : options)
    for (const Take& take : option.takes)
      if (step[take.pool] % aligned(option, take.pool) != 0)
        step[take.pool] = std::gcd(step[take.pool], aligned(option, take.pool));
  neighbours_.assign(space.pools().size(), std::numeric_limits<int>::max());
  for (const StageOption& option : options) {
    const Take& take = option.takes.front();
    const int fewest =
        std::min(take.devices, std::max(step[take.pool], aligned(option, take.pool)));
    neighbours_[take.pool] = std::min(neighbours_[take.pool], fewest);
  }
}

Seconds TiedSyncLowerBound::time(int first_pool, int neighbours, bool same_node,
                                 const StageOption& last) const {
  const Problem& problem = space_.problem();
  const Pool& from = space_.pools()[first_pool];
  const Pool& to = space_.pools()[last.takes.front().pool];
  // Any device of the pool that is on another node than the last stage's first, or on the same.
  const DeviceId second = to.devices.front();
  DeviceId first = from.devices.back();
  if (same_node) first = from.devices[std::min(1, from.size() - 1)];
  if (first == second) return {};
  const StateBytes bytes = state_bytes(problem.job);
  const Group group = group_of(problem.cluster, std::vector<DeviceId>{first, second}, neighbours);
  return all_reduce(
      group, Bytes(std::min(bytes.gradient, bytes.sent_gradient) * parameters_ / last.tensor));
}

Seconds TiedSyncLowerBound::between(const StageOption& first, int begin,
                                    const StageOption& last) const {
  if (!any()) return {};
  const int pool = first.takes.front().pool;
  const int per_node = space_.pools()[pool].per_node;
  const int neighbours = std::min(first.takes.front().devices, per_node - begin % per_node);
  const bool same_node = pool == last.takes.front().pool && begin < per_node;
  return time(pool, neighbours, same_node, last);
}

Seconds TiedSyncLowerBound::with_last(const StageOption& last) const {
  if (!any()) return {};
  Seconds least(HUGE_VAL);
  for (int p = 0; p < static_cast<int>(neighbours_.size()); ++p) {
    if (neighbours_[p] == std::numeric_limits<int>::max()) continue;
    const bool own = p == last.takes.front().pool;
    const int per_node = space_.pools()[p].per_node;
    const bool may_share = own && last.takes.front().devices < per_node;
    const bool other_node = !own || space_.pools()[p].size() > per_node;
    if (other_node) least = std::min(least, time(p, neighbours_[p], false, last));
    if (may_share) least = std::min(least, time(p, 1, true, last));
  }
  return std::isfinite(least.value) ? least : Seconds(0);
}

}  // namespace plait
