#include "search/uniform/uniform_search.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "base/parallel.h"
#include "search/bound/proof.h"
#include "search/space/worthwhile.h"
#include "search/uniform/layout_evaluation.h"
#include "search/uniform/layout_queue.h"
#include "search/uniform/layouts/smaller_mixes.h"
#include "search/uniform/moved_layers.h"
#include "search/uniform/open_layouts.h"
#include "search/uniform/other_shapes.h"

namespace plait {
namespace {

using Clock = std::chrono::steady_clock;

// Layouts of which plans are costed.
constexpr double kMostLayouts = 1'500;   // with all nodes; and with fewer
constexpr double kFewLayouts = 600;      // on single nodes to begin with
constexpr std::size_t kMostMixes = 600;  // besides the one of all nodes
constexpr double kOfAnOrder = 0.03;      // of hosts, relative to a layout of which plans are costed
constexpr std::size_t kFewAgain = 128;   // layouts that are looked at again ..
constexpr std::size_t kAtOnce = 16;      // .. so many of them at once
constexpr std::size_t kTried = 24;       // plans whose layers are moved in the end, a little ..
constexpr std::size_t kPolished = 3;     // .. and, of these, further
constexpr double kHopeful = 1.01;        // relative to the best plan: chunks that may gain as much
// Work relative to the usual.
constexpr double kQuick = 0.125;
constexpr double kThorough = 8;
constexpr int kMostEffortRounds = 8;  // each with twice the work of the one before
constexpr double kOpen = 0.1;         // one for which the bound of all plans is asked, too
// By so much printed bounds are lower than what is proven: sums of times are rounded, and plans
// that recompute layers without need, which are not looked at, wait for the host a little less
// (6e-8).
constexpr double kSlack = 1e-6;

std::span<const UniformLayout> taken_from(std::span<const UniformLayout>& rest) {
  const std::span<const UniformLayout> taken = rest.first(std::min(kAtOnce, rest.size()));
  rest = rest.subspan(taken.size());
  return taken;
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
    const Effort effort = effort_of(context_.options);
    // Where links are slow, bounds are low and one node is hard to beat: it comes first.
    look_at(single_nodes(), kFewLayouts, 1);
    report("one node", begin, result);
    // More effort goes on from what less of it found.
    look_at({0}, kMostLayouts, kQuick);
    const bool goes_on = effort != Effort::quick || found_.empty();
    if (goes_on) go_through(queues_.back(), 1);
    report("all nodes", begin, result);
    if (goes_on) look_at_fewer_nodes(1);
    report("fewer nodes", begin, result);
    if (effort != Effort::quick) {
      polish(1);
      look_again(1, kFewAgain);
      look_at_all_orders(kFewAgain);
      look_at_other_nodes(kFewAgain);
    }
    if (effort >= Effort::thorough) {
      go_on(effort);
      report("more effort", begin, result);
    }
    add_other_shapes();
    if (!context_.options.pins.zero) drop_idle_zero(engine_, by_shape_);
    report("other layouts", begin, result);
    if (effort != Effort::quick) prove(effort);
    report("bound of all", begin, result);
    return finished(result);
  }

 private:
  bool stop() const {
    if (!stopped_ && context_.should_stop()) stopped_ = true;
    return stopped_;
  }

  Seconds wanted() const { return std::min(found_.best(), context_.options.cutoff); }
  Seconds lower_bound() const {
    Seconds least = found_.best();
    for (const LayoutQueue& queue : queues_) least = std::min(least, queue.bound());
    for (const UniformLayout& layout : short_of_memory_) least = std::min(least, layout.bound);
    for (const OpenLayout& open : loose_) least = std::min(least, open.layout.bound);
    for (const OpenLayout& open : settled_) least = std::min(least, open.layout.bound);
    for (std::size_t i = next_mix_; fewer_nodes_ && i < fewer_nodes_->size(); ++i)
      least = std::min(least, std::max((*fewer_nodes_)[i].bound, of_other_nodes_));
    return least;
  }

  bool has_reached_target() const {
    const double gap = context_.options.target_gap.value_or(kProven);
    return found_.best() <= (1 + gap) * lower_bound();
  }

  std::vector<int> single_nodes() const {
    std::vector<int> which;
    for (int i = 1; i < static_cast<int>(mixes_.size()); ++i)
      if (std::accumulate(mixes_[i].begin(), mixes_[i].end(), 0) == 1) which.push_back(i);
    return which;
  }

  // Lists the layouts of these mixes and evaluates them, lowest bound first, until plans of `most`
  // of them were costed, or of as many as that much work allows.
  void look_at(const std::vector<int>& mixes, double most, double work) {
    if (mixes.empty()) return;
    auto [all, are_all] = layouts_.list(mixes_, mixes, wanted(), [this] { return stop(); });
    listed_all_ = listed_all_ && are_all;
    std::erase_if(all, [&](const UniformLayout& layout) {
      return !is_promising(context_, layout.settings.micro_batches);
    });
    queues_.emplace_back(std::move(all), most);
    go_through(queues_.back(), work);
  }

  void go_through(LayoutQueue& queue, double work) {
    while (!stop()) {
      const std::span<const UniformLayout> round = queue.next(work, wanted());
      if (round.empty()) break;
      queue.count(evaluate_round(round));
    }
    recompute_some(work * queue.most());
  }

  // Layouts that had too little memory, with some layers recomputed. They come last: what was found
  // without tells most of them to be too slow.
  void recompute_some(double most) {
    std::ranges::stable_sort(short_of_memory_, {}, &UniformLayout::bound);
    const std::vector<UniformLayout> all = std::exchange(short_of_memory_, {});
    std::span<const UniformLayout> rest = all;
    for (double costed = 0; !rest.empty() && costed < most && !stop();) {
      if (rest.front().bound >= wanted()) return;
      costed += evaluate_round(taken_from(rest));
    }
    short_of_memory_.assign(rest.begin(), rest.end());
  }

  // With more work, from what was found so far: nothing is lost.
  void go_on(Effort effort) {
    double work = kThorough;
    for (int round = 1; !has_reached_target() && !stop(); ++round) {
      for (LayoutQueue& queue : queues_) go_through(queue, work);
      look_at_fewer_nodes(work);
      look_again(work, static_cast<std::size_t>(work) * kFewAgain);
      look_at_all_orders(static_cast<std::size_t>(work) * kFewAgain);
      look_at_other_nodes(static_cast<std::size_t>(work) * kFewAgain);
      polish(work);
      if (effort != Effort::prove || round == kMostEffortRounds) return;
      work *= 2;
    }
  }

  // At layouts whose bounds are below the best plan, lowest bound first: what was known when they
  // were looked at was less than is known now.
  void look_again(double work, std::size_t most) {
    ground_.work = work;
    ground_.most_orders = std::numeric_limits<std::size_t>::max();
    std::vector<OpenLayout> open = std::exchange(loose_, {});
    std::ranges::stable_sort(open, {}, [](const OpenLayout& own) { return own.layout.bound; });
    std::vector<UniformLayout> all;
    for (const OpenLayout& own : open) all.push_back(own.layout);
    std::span<const UniformLayout> rest = all;
    while (!rest.empty() && all.size() - rest.size() < most &&
           (1 + kProven) * rest.front().bound < wanted() && !stop())
      evaluate_round(taken_from(rest), false);
    loose_.insert(loose_.end(), open.end() - static_cast<long>(rest.size()), open.end());
    ground_.work = 1;
    ground_.most_orders = kUsualOrders;
  }

  // What no mix of nodes undercuts that was not looked at, by the degrees that it may have.
  void look_at_other_nodes(std::size_t most) {
    of_other_nodes_ = Seconds(0);
    if (!fewer_nodes_ || !listed_all_) return;
    if (next_mix_ == fewer_nodes_->size() && are_all_mixes(kinds_)) return;
    if (found_.best() <= (1 + kProven) * proven()) return;
    std::vector<bool> is_left(mixes_.size());
    for (std::size_t i = next_mix_; i < fewer_nodes_->size(); ++i)
      is_left[(*fewer_nodes_)[i].mix] = true;
    std::vector<int> others;
    for (int i = 0; i < listed_mixes_; ++i)
      if (!is_left[i]) others.push_back(i);
    of_other_nodes_ = bound_of_families(ground_, layouts_, mixes_, others, wanted(), most);
  }

  // What no order of hosts undercuts, lowest bound first, as long as that raises the lowest.
  void look_at_all_orders(std::size_t most) {
    std::vector<OpenLayout*> open;
    for (std::vector<OpenLayout>* own : {&loose_, &settled_})
      for (OpenLayout& layout : *own)
        if (layout.listed > layout.layout.bound) open.push_back(&layout);
    raise_lowest(ground_, open, wanted(), most);
  }

  // How many plans that costed.
  double evaluate_round(std::span<const UniformLayout> round, bool is_new = true) {
    const int count = static_cast<int>(round.size());
    std::vector<Shortlist> results(count, found_.without_counts());
    std::vector<Evaluated> evaluated(count);
    const Seconds limit = wanted();
    parallel_for(count, context_.options.threads, [&](int i) {
      evaluated[i].bound = round[i].bound;
      if (round[i].bound < limit && (!stop() || results[i].empty()))
        evaluated[i] = evaluate(ground_, round[i], limit, results[i]);
    });
    const Seconds before = found_.best();
    double costed = 0;
    for (int i = 0; i < count; ++i) {
      const double found = results[i].evaluations() > 0 ? 1 : kOfAMisfit;
      costed += std::max(found, kOfAnOrder * static_cast<double>(evaluated[i].orders));
      if (is_new && evaluated[i].lacks_memory && may_recompute_some(space_, round[i])) {
        short_of_memory_.push_back(round[i]);
        short_of_memory_.back().recomputes_some = true;
      }
      keep(results[i]);
      for (const NearPlan& near : evaluated[i].near) near_.keep(near);
    }
    for (int i = 0; i < count; ++i) {
      const Seconds bound = std::max(round[i].bound, evaluated[i].bound);
      if (bound >= found_.best()) continue;
      OpenLayout& open = (evaluated[i].is_settled ? settled_ : loose_).emplace_back();
      open = {round[i], evaluated[i].listed};
      open.layout.bound = bound;
    }
    if (context_.on_improvement && found_.best() < before)
      context_.on_improvement(found_.plans().front(), found_.evaluations() + evaluations_);
    return costed;
  }

  void keep(const Shortlist& result) {
    found_.merge(result);
    for (const RankedPlan& ranked : result.plans()) {
      const auto [at, is_new] = by_shape_.try_emplace(shape_of(ranked.plan), ranked);
      if (!is_new && std::pair(ranked.cost.step, ranked.plan) <
                         std::pair(at->second.cost.step, at->second.plan))
        at->second = ranked;
      best_.keep({ranked.cost.step, ranked.plan});
    }
  }

  // Mixes of fewer nodes whose devices could compute fast enough.
  void look_at_fewer_nodes(double work) {
    if (!fewer_nodes_) fewer_nodes_ = smaller_mixes(context_, kinds_, mixes_, layouts_, wanted());
    if (!fewer_nodes_) return;
    const std::vector<BoundedMix>& all = *fewer_nodes_;
    const auto most = static_cast<std::size_t>(work * static_cast<double>(kMostMixes));
    std::vector<int> which;
    for (; next_mix_ < std::min(most, all.size()); ++next_mix_)
      if (all[next_mix_].bound < wanted()) which.push_back(all[next_mix_].mix);
    look_at(which, kMostLayouts, work);
  }

  // Layers of the best plans are moved one by one: how far a layout was looked into depends on what
  // was known by then, and chunks of a stage may be as uneven as its memory asks for.
  void polish(double work) {
    const Pins& pins = space_.pins();
    // Of plans that recompute some layers each number would have to be looked at, so that pinning
    // one does not give a better plan.
    if (found_.empty() || !pins.stages.empty() || pins.recompute_layers) return;
    std::vector<NearPlan> plans = best_.all();
    move_layers_of(plans, kPolished, work);
    plans = near_.all();
    move_layers_of(plans, kTried,
                   work * static_cast<double>(kPolished) / static_cast<double>(kTried));
    move_layers_of(plans, kPolished, work);
  }

  // Of so many plans that promise most; they promise what came of it.
  void move_layers_of(std::vector<NearPlan>& plans, std::size_t count, double work) {
    std::ranges::stable_sort(plans, {}, &NearPlan::promise);
    plans.resize(std::min(plans.size(), static_cast<std::size_t>(std::max(1.0, work)) * count));
    for (NearPlan& near : plans) {
      if (stop()) return;
      // The bound of interleaved plans is that of chunks which differ by a layer at most.
      const bool may_be_faster =
          near.plan.schedule == Schedule::interleaved && near.promise < kHopeful * wanted();
      near.promise = Seconds(HUGE_VAL);
      if (!may_be_faster && found_.best() <= (1 + kProven) * lower_bound()) continue;
      Shortlist better(engine_, 1, context_.options.target);
      move_layers(context_, near.plan, work, wanted(), better);
      if (better.empty()) continue;
      near = {better.best(), better.plans().front().plan};
      keep(better);
    }
  }

  void add_other_shapes() {
    std::vector<UniformLayout> all;
    for (const LayoutQueue& queue : queues_)
      all.insert(all.end(), queue.all().begin(), queue.all().end());
    evaluations_ +=
        find_other_shapes(ground_, all, static_cast<std::size_t>(context_.options.keep), by_shape_);
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
                             lower_bound()});
  }

  SearchResult finished(SearchResult& result) {
    result.plans = best_of(by_shape_, static_cast<std::size_t>(context_.options.keep));
    result.evaluations = found_.evaluations() + evaluations_;
    result.nearest = found_.nearest();
    result.cut_short = stopped_;
    if (!found_.empty()) result.lower_bound = (1 - kSlack) * proven();
    result.searched_whole_space = true;
    return std::move(result);
  }

  // Networks and memory, which bounds of mixes that were not listed do not know, and all orders at
  // once.
  void prove(Effort effort) {
    for (const Effort questions : {Effort::normal, effort}) {
      if (found_.empty() || found_.best() <= (1 + kOpen) * proven() || stop()) return;
      floor_ = std::max(floor_, floor_of_all(context_, engine_, found_.best(), questions));
      if (effort == Effort::normal) return;
    }
  }

  // What was not listed has no other bound than what its devices can compute, or that of all plans.
  Seconds proven() const {
    Seconds least = lower_bound();
    if (!fewer_nodes_ || !listed_all_ || !are_all_mixes(kinds_))
      least =
          std::min(least, std::max(of_other_nodes_, least_step(context_, kinds_, mixes_.front())));
    return std::min(found_.best(), std::max(least, floor_));
  }

  const SearchContext& context_;
  const Space& space_;
  const CostEngine& engine_;
  std::vector<NodeKind> kinds_;
  std::vector<NodeMix> mixes_;  // then those of families
  UniformLayouts layouts_;
  Shortlist found_;
  UniformGround ground_;
  BestByShape by_shape_;
  NearPlans best_;  // that were the best of all for a while
  NearPlans near_;  // by their closed form
  std::vector<LayoutQueue> queues_;
  std::vector<UniformLayout> short_of_memory_;
  // Evaluated, with a bound that was below the best plan then.
  std::vector<OpenLayout> loose_;
  std::vector<OpenLayout> settled_;  // of which evaluating them again would tell no more
  bool listed_all_ = true;           // the layouts of the mixes that were looked at
  std::optional<std::vector<BoundedMix>> fewer_nodes_;
  std::size_t next_mix_ = 0;  // of these, that has not been listed
  int listed_mixes_ = static_cast<int>(mixes_.size());
  Seconds of_other_nodes_;        // nothing on mixes that were not looked at is faster
  Seconds floor_;                 // no plan at all is faster
  std::int64_t evaluations_ = 0;  // of other shapes
  mutable std::atomic<bool> stopped_ = false;
};

}  // namespace

SearchResult search_uniform(const SearchContext& context) { return UniformSearch(context).run(); }

}  // namespace plait
