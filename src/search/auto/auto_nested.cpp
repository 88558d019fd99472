#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>

#include "search/auto/auto_search.h"
#include "search/bound/cluster_lower_bound.h"
#include "search/space/pins.h"
#include "search/space/planners.h"
#include "search/space/sub_cluster.h"
#include "search/uniform/uniform_search.h"

// The passes that search a related problem, whose plans are plans of this one as well: the same
// model by its layers, the same cluster without its slower types or with fewer nodes, the same
// plans with less freedom.
namespace plait {
namespace {

// Of the speed of all devices: what the types that are kept must have.
constexpr double kWorthAlone = 0.5;
// What plans of a part may take, relative to the best known, to be worth moves of their own.
constexpr double kHopeful = 1.5;
constexpr double kHopefulAlone = 10;
constexpr double kMostCuts = 1e6;  // of a chain into stages, that all plans are listed for

// Of a chain of units into at most so many stages.
double ways_to_cut(int units, int stages) {
  double ways = 1;  // into s stages
  double sum = 1;
  for (int s = 2; s <= std::min(stages, units); ++s) {
    ways *= (units - s + 1.0) / (s - 1);
    sum += ways;
  }
  return sum;
}

// 1, 2, 3, 4, 5, 6, 8, 9, 10, 12, ..
bool has_small_divisors(int n) {
  for (const int d : {2, 3, 5})
    while (n % d == 0) n /= d;
  return n == 1;
}

// Of each kind of node as many as have small divisors only.
std::vector<bool> rounded_nodes(const Cluster& cluster) {
  std::vector<bool> kept(cluster.nodes.size(), true);
  for (const std::vector<int>& kind : node_kinds(cluster)) {
    std::size_t count = kind.size();
    while (!has_small_divisors(static_cast<int>(count))) kept[kind[--count]] = false;
  }
  return kept;
}

}  // namespace

void AutoSearch::try_layers() {
  const Problem by_layers = plait::by_layers(context_.problem, *layers_);
  if (violation_of(by_layers, context_.options.pins, context_.options.target)) return;
  SearchContext context{by_layers, context_.options, context_.stop, {}, {}};
  context.options.keep = std::max(kKept, context_.options.keep);
  context.options.time_limit = Seconds(
      std::chrono::duration<double>(context_.deadline - std::chrono::steady_clock::now()).count());
  const SearchResult result = run_search(planners().front(), context);
  for (const RankedPlan& ranked : result.plans) found_.offer(in_ops(ranked.plan, *layers_));
  if (context_.on_improvement && !found_.empty())
    context_.on_improvement(found_.plans().front(), found_.evaluations());
  if (found_.empty() && !candidates_.is_listed()) candidates_ = listed();
}

// Stages, options and suffixes that are dominated are left out on the way, and may be the only ones
// that a target with rules of its own runs.
bool AutoSearch::may_list_all() const {
  const Target& target = context_.options.target;
  const bool rules = target.ranks_in_order || !target.idle_in_node;
  return !layers_ && rules && is_small() && is_enumerable() &&
         ways_to_cut(context_.problem.model.unit_count(), devices()) <= kMostCuts;
}

void AutoSearch::try_every_plan() {
  constexpr std::int64_t kMostPlans = 100'000;
  SearchContext context = context_;
  context.options.max_evaluations = kMostPlans;
  if (exact_schedule())
    context.options.cutoff = std::min(context.options.cutoff, found_.worst_kept());
  context.on_improvement = {};
  context.on_progress = {};
  const SearchResult every = search_exhaustively(context);
  for (const RankedPlan& ranked : every.plans) found_.offer(ranked.plan);
  proven_ = !every.cut_short;
}

void AutoSearch::try_one_layout() {
  SearchContext context = context_;
  Target& target = context.options.target;
  target.one_layout = true;
  target.unequal_shares = target.idle_in_node = false;
  if (target.recompute_layers == RecomputeLayers::any)
    target.recompute_layers = RecomputeLayers::same;  // moves recompute less
  std::erase_if(target.schedules, [](Schedule schedule) {
    return schedule != Schedule::gpipe && schedule != Schedule::one_f_one_b &&
           schedule != Schedule::interleaved;
  });
  if (violation_of(context.problem, context.options.pins, target)) return;
  const Space space(context.problem, context.options.pins, target);
  context.space = &space;
  context.options.keep = 1;
  context.options.effort = Effort::quick;  // they are starts of moves
  context.options.cutoff = best_so_far();
  context.on_improvement = {};
  context.on_progress = {};
  for (const RankedPlan& ranked : search_uniform(context).plans) found_.offer(ranked.plan);
}

bool AutoSearch::recomputes_some() const {
  if (!space_.recomputes_by_layer() || !may_move() || found_.empty()) return false;
  return std::ranges::any_of(found_.plans(), [&](const RankedPlan& ranked) {
    return std::ranges::any_of(ranked.plan.stages, [&](const Stage& stage) {
      return std::ranges::any_of(stage.spans, [&](const Span& span) {
        return span.recompute != space_.recomputes().front();
      });
    });
  });
}

// Also where no plan that was found recomputes anything, but one of them has no room for twice its
// activations: plans that are about as fast do.
bool AutoSearch::lacks_memory() const {
  if (!space_.recomputes_by_layer() || !may_move() || found_.empty()) return false;
  return recomputes_some() || std::ranges::any_of(found_.plans(), [](const RankedPlan& ranked) {
           return std::ranges::any_of(ranked.cost.stages, [](const StageCost& stage) {
             return stage.spare() < stage.activations;
           });
         });
}

void AutoSearch::try_by_stage() { try_by_stage_with(Effort::quick); }

void AutoSearch::try_by_stage_in_full() { try_by_stage_with(Effort::normal); }

void AutoSearch::try_by_stage_with(Effort effort) {
  SearchContext context = context_;
  context.options.target.recompute_layers = RecomputeLayers::same;
  const Space space(context.problem, context.options.pins, context.options.target);
  context.space = &space;
  // In full as it would be asked for by itself.
  if (effort == Effort::quick) context.options.keep = kKept;
  context.options.effort = effort;
  context.on_improvement = {};
  context.on_progress = {};
  AutoSearch by_stage(context, &memos_);
  by_stage.is_nested_ = true;
  for (const RankedPlan& ranked : by_stage.run().plans) found_.offer(ranked.plan);
}

bool AutoSearch::has_slower_types() const {
  return is_not_enumerable() && context_.problem.cluster.device_types.size() > 1;
}

// The slowest type is left out, then the two slowest, .. as long as half of the speed remains.
void AutoSearch::try_fewer_types() {
  const Cluster& cluster = context_.problem.cluster;
  std::vector<double> speeds;
  std::vector<double> all(cluster.device_types.size());
  for (const DeviceType& type : cluster.device_types)
    speeds.push_back(type.peak_of(DType::fp16).value * type.efficiency.matmul);
  for (const Device& device : cluster.devices) all[device.type] += speeds[device.type];
  double left = std::accumulate(all.begin(), all.end(), 0.0);
  const double least = kWorthAlone * left;
  std::vector<bool> kept(cluster.devices.size(), true);
  std::vector<int> order(all.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int type) { return speeds[type]; });
  order.pop_back();
  for (const int type : order) {
    left -= all[type];
    if (left < least || stop()) return;
    for (std::size_t i = 0; i < kept.size(); ++i)
      if (cluster.devices[i].type == type) kept[i] = false;
    try_part(kept, Effort::quick);
  }
}

bool AutoSearch::has_several_nodes() const {
  return is_not_enumerable() && context_.problem.cluster.nodes.size() > 1;
}

// Where the network is slow few nodes are faster than all of them. And a number of nodes that few
// degrees divide leaves less to choose from than a number that is a little smaller.
void AutoSearch::try_fewer_nodes() {
  const Cluster& cluster = context_.problem.cluster;
  const int nodes = static_cast<int>(cluster.nodes.size());
  const ClusterLowerBound bound(engine_, context_.options.pins, context_.options.target,
                                [this] { return stop(); });
  const auto may_gain = [&](const std::vector<bool>& kept) {
    std::vector<int> devices(cluster.device_types.size());
    for (std::size_t i = 0; i < kept.size(); ++i)
      if (kept[i]) ++devices[cluster.devices[i].type];
    return bound.step(devices) < best_so_far();
  };
  const std::vector<bool> rounded = devices_of(rounded_nodes(cluster));
  if (!std::ranges::all_of(rounded, std::identity()) && may_gain(rounded))
    try_part(rounded, Effort::normal);
  // The first nodes are the fastest.
  for (int count = nodes / 2; count >= 1 && !stop(); count /= 2) {
    std::vector<bool> first(nodes, false);
    std::fill_n(first.begin(), count, true);
    const std::vector<bool> kept = devices_of(first);
    if (!may_gain(kept)) break;
    try_part(kept, Effort::quick);
  }
  // Where most nodes are idle, as many again as are not.
  for (int last = 0; !found_.empty() && !stop();) {
    std::vector<bool> kept(nodes, false);
    for (const Stage& stage : found_.plans().front().plan.stages)
      for (const DeviceId id : stage.devices) kept[cluster.device(id).node] = true;
    const int count = 2 * static_cast<int>(std::ranges::count(kept, true));
    if (count > nodes / 2 || count == last) return;
    last = count;
    for (int n = 0; std::ranges::count(kept, true) < count; ++n) kept[n] = true;
    try_part(devices_of(kept), Effort::normal);
  }
}

std::vector<bool> AutoSearch::devices_of(const std::vector<bool>& nodes) const {
  std::vector<bool> kept;
  for (const Device& device : context_.problem.cluster.devices) kept.push_back(nodes[device.node]);
  return kept;
}

Seconds AutoSearch::best_so_far() const {
  return std::min(wanted(found_), aside_ ? aside_->best() : Seconds(HUGE_VAL));
}

void AutoSearch::try_part(const std::vector<bool>& kept, Effort effort) {
  const SubCluster part = keep_devices(context_.problem.cluster, kept);
  Problem smaller = context_.problem;
  smaller.cluster = part.cluster;
  if (violation_of(smaller, context_.options.pins, context_.options.target)) return;
  SearchContext context{smaller, context_.options, context_.stop, {}, {}};
  context.options.effort = effort;
  context.options.keep = kKept;
  // With much effort it finds what it would find if the part were all there is.
  const double hopeful = effort == Effort::quick ? kHopeful : kHopefulAlone;
  context.options.cutoff = std::min(context.options.cutoff, hopeful * best_so_far());
  context.options.time_limit = Seconds(
      std::chrono::duration<double>(context_.deadline - std::chrono::steady_clock::now()).count());
  const SearchResult result = run_search(planners().front(), context);
  for (const RankedPlan& ranked : result.plans) found_.offer(in_whole(part, ranked.plan));
}

}  // namespace plait
