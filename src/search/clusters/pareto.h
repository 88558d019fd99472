#pragma once

#include <optional>
#include <span>
#include <vector>

#include "search/space/search.h"

namespace plait {

// Equal nodes of a cluster, of which a mix takes the first few: one of `counts`.
struct MixKind {
  std::vector<int> nodes;   // positions in Cluster::nodes
  std::vector<int> counts;  // that are allowed, ascending, each from 0 to the number of nodes
};

// How many nodes of each kind.
using Mix = std::vector<int>;

// A mix and the best plan on it. The mix is of the nodes that the plan really uses (or the fewest
// that are allowed), so a plan that leaves nodes idle counts for a smaller mix.
struct MixPoint {
  Mix mix;
  RankedPlan best;  // device ids are those of the whole cluster
  UsdPerSecond rent;
  Seconds step() const { return best.cost.step; }
  Usd price() const { return rent * best.cost.step; }  // of a step
};

struct ParetoResult {
  std::vector<MixPoint> front;   // cheapest first, so slowest first
  std::vector<MixPoint> behind;  // planned, but dominated; in order of their mixes
  std::int64_t mixes = 0;        // all that the counts allow, the empty one apart
  std::int64_t planned = 0;      // of them; the others cannot be on the front
  std::int64_t evaluations = 0;
  bool cut_short = false;
  std::optional<RankedPlan> nearest;  // when the front is empty, if a planner had one
  // Where a step is said that is short enough: of the mixes with such a plan one with the fewest
  // nodes, and the fastest that was found with fewer.
  std::optional<MixPoint> fewest;
  std::optional<MixPoint> too_slow;
};

// Most mixes that pareto_front looks at.
inline constexpr std::int64_t kMaxMixes = 20'000;
std::int64_t mix_count(std::span<const MixKind> kinds);

// The Pareto front of price against time of a step, over all mixes: every plan on it is cheaper or
// faster than every other plan that the planner knows, on any mix. A mix is planned only if it
// could be on the front: with F the points so far and r the rent of the mix, a plan is of use when
// its step is shorter than
//   min over f in F of max(f.time, f.price / r),
// so mixes whose throughput floor is not below that are left out, and the planner is told to look
// for nothing slower. All nodes must have a price, and the counts allow at most kMaxMixes.
// context.on_progress is called; context.on_improvement is not. `enough` is a step that is short
// enough.
ParetoResult pareto_front(const Planner& planner, const SearchContext& context,
                          std::span<const MixKind> kinds, std::optional<Seconds> enough = {});

// The kinds of a cluster with all counts; where that are too many mixes, fewer counts: all up to
// 8, then 3/2 and 2 times the one before, and the full number.
std::vector<MixKind> mix_kinds(const Cluster& cluster);

int node_count(const Mix& mix);

// The nodes of each kind that a plan uses, or the fewest that are allowed.
Mix mix_of(const Cluster& cluster, std::span<const MixKind> kinds, const Plan& plan);

}  // namespace plait
