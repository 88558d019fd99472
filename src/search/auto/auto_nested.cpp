#include <algorithm>
#include <chrono>
#include <numeric>

#include "search/auto/auto_search.h"
#include "search/space/pins.h"
#include "search/space/planners.h"
#include "search/space/sub_cluster.h"
#include "search/uniform/uniform_search.h"

// The passes that search a related problem, whose plans are plans of this one as well: the same
// model by its layers, the same cluster without its slower types, the same plans with less freedom.
namespace plait {
namespace {

// Of the speed of all devices: what the types that are kept must have.
constexpr double kWorthAlone = 0.5;
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
  if (context_.on_improvement && !found_.empty()) context_.on_improvement(found_.plans().front());
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
  context.options.effort = Effort::normal;
  context.options.cutoff = wanted(found_);
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

void AutoSearch::try_by_stage() {
  SearchContext context = context_;
  context.options.target.recompute_layers = RecomputeLayers::same;
  const Space space(context.problem, context.options.pins, context.options.target);
  context.space = &space;
  context.options.keep = kKept;
  context.options.effort = Effort::normal;
  context.on_improvement = {};
  context.on_progress = {};
  AutoSearch by_stage(context);
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
    try_part(kept);
  }
}

void AutoSearch::try_part(const std::vector<bool>& kept) {
  const SubCluster part = keep_devices(context_.problem.cluster, kept);
  Problem smaller = context_.problem;
  smaller.cluster = part.cluster;
  if (violation_of(smaller, context_.options.pins, context_.options.target)) return;
  SearchContext context{smaller, context_.options, context_.stop, {}, {}};
  context.options.effort = Effort::quick;
  context.options.keep = kKept;
  context.options.time_limit = Seconds(
      std::chrono::duration<double>(context_.deadline - std::chrono::steady_clock::now()).count());
  const SearchResult result = run_search(planners().front(), context);
  for (const RankedPlan& ranked : result.plans) found_.offer(in_whole(part, ranked.plan));
}

}  // namespace plait
