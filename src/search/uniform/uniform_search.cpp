#include "search/uniform/uniform_search.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/parallel.h"
#include "search/bound/cluster_lower_bound.h"
#include "search/space/worthwhile.h"
#include "search/uniform/division/chunk_descent.h"
#include "search/uniform/division/chunk_layers.h"
#include "search/uniform/layout_evaluation.h"

namespace plait {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kRound = 16;  // layouts that start from the same incumbent
// Layouts of which plans are costed. One that does not fit costs about an eighth of that, and
// counts as much: on long sequences those with the lowest bounds do not fit.
constexpr double kOfAMisfit = 0.125;
constexpr double kMostLayouts = 1'500;   // with all nodes; and with fewer
constexpr double kMostLeaders = 600;     // of these, those that come before others
constexpr double kFewLayouts = 600;      // on single nodes to begin with
constexpr std::size_t kMostMixes = 600;  // besides the one of all nodes
constexpr std::size_t kShapes = 3;       // that are looked at for each other plan to show
constexpr std::size_t kOfShape = 6;      // layouts of each
constexpr std::size_t kPolished = 3;     // plans whose layers are moved in the end
constexpr double kMostPolishing = 200;   // simulations of each
constexpr double kPolishedTasks = 600'000;

// What people call a layout: tensor, stages, context, expert.
using Shape = std::tuple<int, int, int, int>;

Shape shape_of(const Plan& plan) {
  return {plan.stages.front().spans.front().tensor, plan.stage_count(), plan.context, plan.expert};
}

class UniformSearch {
 public:
  explicit UniformSearch(const SearchContext& context)
      : context_(context),
        space_(*context.space),
        engine_(*context.engine),
        kinds_(node_kinds(context.problem, context.options.target)),
        mixes_(node_mixes(kinds_)),
        layouts_(space_, engine_, kinds_, context.options.threads),
        found_(engine_, 1, context.options.target),
        ground_{context, engine_, kinds_, mixes_, layouts_, {}, [this] { return stop(); }} {
    for (const Recompute recompute : space_.recomputes()) {
      Pins pins = space_.pins();
      if (!pins.recompute_layers) pins.recompute = recompute;
      ground_.spaces.emplace(
          recompute, std::make_unique<Space>(context.problem, pins, context.options.target));
    }
  }

  SearchResult run() {
    SearchResult result;
    if (space_.violation() || kinds_.empty()) return finished(result);
    const Clock::time_point begin = Clock::now();
    // Where links are slow, bounds are low and one node is hard to beat: it comes first.
    look_at(single_nodes(), kFewLayouts);
    report("one node", begin, result);
    look_at({0}, kMostLayouts);
    report("all nodes", begin, result);
    look_at_fewer_nodes();
    report("fewer nodes", begin, result);
    polish();
    drop_idle_zero();
    add_other_shapes();
    report("other layouts", begin, result);
    return finished(result);
  }

 private:
  bool stop() const {
    if (!stopped_ && context_.should_stop()) stopped_ = true;
    return stopped_;
  }

  Seconds wanted() const { return std::min(found_.best(), context_.options.cutoff); }
  Seconds lower_bound() const { return std::min(found_.best(), bound_); }

  std::vector<int> single_nodes() const {
    std::vector<int> which;
    for (int i = 1; i < static_cast<int>(mixes_.size()); ++i)
      if (std::accumulate(mixes_[i].begin(), mixes_[i].end(), 0) == 1) which.push_back(i);
    return which;
  }

  // Lists the layouts of these mixes and evaluates them, lowest bound first, until plans of `most`
  // of them were costed.
  void look_at(const std::vector<int>& mixes, double most) {
    if (mixes.empty()) return;
    std::vector<UniformLayout> all = layouts_.list(mixes_, mixes, wanted());
    std::erase_if(all, [&](const UniformLayout& layout) {
      return !is_promising(context_, layout.settings.micro_batches);
    });
    std::ranges::stable_sort(all, {}, &UniformLayout::bound);
    const auto leaders = static_cast<std::size_t>(lead_by_degrees(all));
    std::size_t next = 0;
    costed_ = 0;
    while (next < leaders && costed_ < std::min(kMostLeaders, most) && !stop())
      next = evaluate_round(all, next);
    std::ranges::stable_sort(all.begin() + static_cast<long>(next), all.end(), {},
                             &UniformLayout::bound);
    while (next < all.size() && all[next].bound < wanted() && costed_ < most && !stop())
      next = evaluate_round(all, next);
    if (next < all.size()) bound_ = std::min(bound_, all[next].bound);
    open_.insert(open_.end(), all.begin() + static_cast<long>(next), all.end());
    recompute_some(most);
  }

  // Layouts that had too little memory, with some layers recomputed. They come last: what was found
  // without tells most of them to be too slow.
  void recompute_some(double most) {
    std::vector<UniformLayout> all = std::exchange(short_of_memory_, {});
    std::ranges::stable_sort(all, {}, &UniformLayout::bound);
    std::size_t next = 0;
    costed_ = 0;
    while (next < all.size() && all[next].bound < wanted() && costed_ < most && !stop())
      next = evaluate_round(all, next);
    if (next < all.size()) bound_ = std::min(bound_, all[next].bound);
  }

  // Whether a layout stands for others that recompute the first layers of every chunk.
  bool may_recompute_some(const UniformLayout& layout) const {
    const Pins& pins = space_.pins();
    return layout.recompute == Recompute::none && !layout.recomputes_some &&
           space_.target().recompute_layers != RecomputeLayers::same && !pins.recompute &&
           !pins.recompute_layers &&
           std::ranges::find(space_.recomputes(), Recompute::full) != space_.recomputes().end();
  }

  // Puts the layout with the lowest bound of each mix of nodes and each degree first; their number.
  // Bounds know little of slow links: in their order alone, many layouts of one kind would come
  // before any of another.
  static long lead_by_degrees(std::vector<UniformLayout>& sorted) {
    std::set<std::tuple<int, int, int, int>> seen;
    const auto rest =
        std::stable_partition(sorted.begin(), sorted.end(), [&](const UniformLayout& layout) {
          return seen.insert({layout.mix, layout.tensor, layout.stages, layout.settings.context})
              .second;
        });
    return rest - sorted.begin();
  }

  std::size_t evaluate_round(const std::vector<UniformLayout>& all, std::size_t first) {
    const std::size_t end = std::min(all.size(), first + kRound);
    const int count = static_cast<int>(end - first);
    std::vector<Shortlist> results(count, found_.without_counts());
    std::vector<Evaluated> evaluated(count);
    const Seconds limit = wanted();
    parallel_for(count, context_.options.threads, [&](int i) {
      const UniformLayout& layout = all[first + i];
      evaluated[i].bound = layout.bound;
      if (layout.bound < limit && (!stop() || results[i].empty()))
        evaluated[i] = evaluate(ground_, layout, limit, results[i]);
    });
    const Seconds before = found_.best();
    for (int i = 0; i < count; ++i) {
      bound_ = std::min(bound_, std::max(all[first + i].bound, evaluated[i].bound));
      costed_ += results[i].evaluations() > 0 ? 1 : kOfAMisfit;
      if (evaluated[i].lacks_memory && may_recompute_some(all[first + i])) {
        short_of_memory_.push_back(all[first + i]);
        short_of_memory_.back().recomputes_some = true;
      }
      keep(results[i]);
    }
    if (context_.on_improvement && found_.best() < before)
      context_.on_improvement(found_.plans().front());
    return end;
  }

  void keep(const Shortlist& result) {
    found_.merge(result);
    for (const RankedPlan& ranked : result.plans()) {
      const Shape shape = shape_of(ranked.plan);
      keep_best(by_shape_, shape, ranked);
      if (ranked.plan.stage_count() > 1 && recomputes_alike(ranked.plan))
        keep_best(alike_,
                  {shape, ranked.plan.schedule, ranked.plan.stages.front().spans.front().recompute},
                  ranked);
    }
  }

  template <typename Key>
  static void keep_best(std::map<Key, RankedPlan>& best, const Key& key, const RankedPlan& ranked) {
    const auto [at, is_new] = best.try_emplace(key, ranked);
    if (!is_new &&
        std::pair(ranked.cost.step, ranked.plan) < std::pair(at->second.cost.step, at->second.plan))
      at->second = ranked;
  }

  // Mixes of fewer nodes whose devices could compute fast enough.
  void look_at_fewer_nodes() {
    const ClusterLowerBound floor(engine_, context_.options.pins, context_.options.target);
    std::vector<int> which;
    for (int i = 1; i < static_cast<int>(mixes_.size()) && !stop(); ++i) {
      const Seconds least = floor.step(devices_of(mixes_[i]));
      if (least >= wanted()) continue;
      if (which.size() == kMostMixes) {
        bound_ = std::min(bound_, least);
        continue;
      }
      which.push_back(i);
    }
    look_at(which, kMostLayouts);
  }

  std::vector<int> devices_of(const NodeMix& mix) const {
    std::vector<int> devices(context_.problem.cluster.device_types.size());
    for (std::size_t k = 0; k < kinds_.size(); ++k)
      for (const int type : kinds_[k].types) devices[type] += mix[k];
    return devices;
  }

  // Layers of the best plans are moved one by one: how far a layout was looked into depends on what
  // was known by then, and chunks of a stage may be as uneven as its memory asks for.
  void polish() {
    if (found_.empty() || !space_.pins().stages.empty()) return;
    std::vector<RankedPlan> best;
    for (const auto& [kind, ranked] : alike_) best.push_back(ranked);
    std::ranges::stable_sort(best, {}, [](const RankedPlan& own) { return own.cost.step; });
    if (best.size() > kPolished) best.resize(kPolished);
    for (const RankedPlan& own : best) {
      if (stop() || own.cost.step <= lower_bound()) return;
      const double tasks = 2.0 * own.plan.micro_batches * own.plan.stage_count() *
                           chunk_count(own.plan.stages.front());
      const ChunkDescent descent{
          engine_, [&](const std::vector<int>& begins) { return recut_like(own.plan, begins); },
          static_cast<int>(std::min(kMostPolishing, kPolishedTasks / tasks))};
      Shortlist better(engine_, 1, context_.options.target);
      better.offer(own.plan);
      descend(descent, layers_in_order(context_.problem.model, own.plan), better);
      keep(better);
    }
  }

  // Whether all layers are recomputed alike. Of others, each number that is recomputed would have
  // to be looked at, so that pinning one does not give a better plan.
  bool recomputes_alike(const Plan& plan) const {
    if (space_.pins().recompute_layers) return false;
    const Recompute first = plan.stages.front().spans.front().recompute;
    return std::ranges::all_of(plan.stages, [&](const Stage& stage) {
      return std::ranges::all_of(stage.spans,
                                 [&](const Span& span) { return span.recompute == first; });
    });
  }

  // The plan with its layers elsewhere; nothing where the program does not run that.
  std::optional<Plan> recut_like(const Plan& like, const std::vector<int>& begins) const {
    const Model& model = context_.problem.model;
    const Plan plan = recut(like, like.schedule, begins, model.unit_count());
    const std::vector<int> layers = layers_in_order(model, plan);
    const auto [least, most] = std::ranges::minmax(layers);
    if (space_.pins().even_layers && most > least + 1) return std::nullopt;
    if (why_not(space_.target(), context_.problem, plan)) return std::nullopt;
    return plan;
  }

  // Plans that are as fast without ZeRO go without.
  void drop_idle_zero() {
    if (context_.options.pins.zero) return;
    for (auto& [shape, ranked] : by_shape_) {
      if (ranked.plan.zero != ZeroStage::optimizer) continue;
      Plan plain = ranked.plan;
      plain.zero = ZeroStage::off;
      const Estimate cost = engine_.simulate(plain);
      if (cost.fits && cost.step <= ranked.cost.step) ranked = {plain, cost};
    }
  }

  // The best of a few more shapes, for people to compare with: of each the layouts with the lowest
  // bounds.
  void add_other_shapes() {
    const auto wanted_shapes = static_cast<std::size_t>(context_.options.keep);
    if (found_.empty() || by_shape_.size() >= wanted_shapes) return;
    std::ranges::stable_sort(open_, {}, &UniformLayout::bound);
    std::map<Shape, std::vector<const UniformLayout*>> others;
    std::vector<Shape> order;
    for (const UniformLayout& layout : open_) {
      const Shape shape{layout.tensor, layout.stages, layout.settings.context,
                        layout.settings.expert};
      if (by_shape_.contains(shape)) continue;
      std::vector<const UniformLayout*>& own = others[shape];
      if (own.empty()) order.push_back(shape);
      if (own.size() < kOfShape) own.push_back(&layout);
    }
    std::size_t tried = 0;
    for (const Shape& shape : order) {
      if (by_shape_.size() >= wanted_shapes || ++tried > kShapes * wanted_shapes || stop()) return;
      Shortlist own(engine_, 1, context_.options.target);
      for (const UniformLayout* layout : others[shape]) evaluate(ground_, *layout, own.best(), own);
      evaluations_ += own.evaluations();
      for (const RankedPlan& ranked : own.plans()) by_shape_.emplace(shape, ranked);
    }
  }

  void report(const char* name, Clock::time_point begin, SearchResult& result) const {
    const std::chrono::duration<double> spent = Clock::now() - begin;
    Seconds before;
    std::int64_t plans = 0;
    for (const PassReport& pass : result.passes) {
      before += pass.elapsed;
      plans += pass.evaluations;
    }
    result.passes.push_back({name, Seconds(spent.count()) - before,
                             found_.evaluations() + evaluations_ - plans, found_.best(),
                             std::isfinite(bound_.value) ? lower_bound() : found_.best()});
  }

  SearchResult finished(SearchResult& result) {
    std::vector<RankedPlan> plans;
    for (auto& [shape, ranked] : by_shape_) plans.push_back(std::move(ranked));
    std::ranges::stable_sort(plans, [](const RankedPlan& a, const RankedPlan& b) {
      return a.cost.step != b.cost.step ? a.cost.step < b.cost.step : a.plan < b.plan;
    });
    const auto asked = static_cast<std::size_t>(context_.options.keep);
    if (plans.size() > asked) plans.resize(asked);
    result.plans = std::move(plans);
    result.evaluations = found_.evaluations() + evaluations_;
    result.nearest = found_.nearest();
    result.cut_short = stopped_;
    if (!found_.empty()) result.lower_bound = lower_bound();
    result.searched_whole_space = true;
    return std::move(result);
  }

  const SearchContext& context_;
  const Space& space_;
  const CostEngine& engine_;
  std::vector<NodeKind> kinds_;
  std::vector<NodeMix> mixes_;
  UniformLayouts layouts_;
  Shortlist found_;
  UniformGround ground_;
  std::map<Shape, RankedPlan> by_shape_;
  // Those whose layers are all recomputed alike, by what else can be pinned.
  std::map<std::tuple<Shape, Schedule, Recompute>, RankedPlan> alike_;
  std::vector<UniformLayout> open_;  // that were not evaluated
  std::vector<UniformLayout> short_of_memory_;
  Seconds bound_ = Seconds(HUGE_VAL);  // of all layouts that were looked at
  std::int64_t evaluations_ = 0;       // of other shapes
  double costed_ = 0;                  // layouts since look_at() began
  mutable std::atomic<bool> stopped_ = false;
};

}  // namespace

SearchResult search_uniform(const SearchContext& context) { return UniformSearch(context).run(); }

}  // namespace plait
