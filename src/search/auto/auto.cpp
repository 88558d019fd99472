#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <utility>

#include "base/parallel.h"
#include "search/auto/branch_and_bound.h"
#include "search/auto/candidates.h"
#include "search/auto/families.h"
#include "search/auto/label_search.h"
#include "search/auto/peer_plans.h"
#include "search/auto/single_stage.h"
#include "search/moves/improve.h"
#include "search/space/host_order.h"
#include "search/space/planners.h"
#include "search/space/schedules.h"
#include "search/space/shortlist.h"
#include "search/space/space.h"

// plait's own planner, in passes over the settings (micro-batches, ZeRO, context, expert):
//   1. bound: what no plan with these settings can beat; settings are taken in that order;
//   2. families: pools cut into equal stages, units balanced over them, the most promising first;
//      plans of one stage where the settings allow no other;
//   3. label search, as a beam and then best first: good pipelines for all device mixes, and a
//      tighter bound;
//   4. what the peers' planners find (on small clusters; before the tight bounds where these do not
//      hold for them);
//   5. branch and bound (on small clusters, for few devices or units), as far as its budget of
//      nodes goes: the exact optimum of the space;
//   6. moves, elsewhere: the best plans, and regular ones, changed step by step in all that is
//   free,
//      beyond the space too: schedules, the order of devices, shares.
// Settings are searched in rounds of fixed size; all of a round start from the same incumbent, so
// the result does not depend on the number of threads.
namespace plait {
namespace {

constexpr int kRound = 8;
constexpr int kBeam = 8;
constexpr std::int64_t kEvaluations = 12'000;  // of the best-first search, per setting
constexpr double kBoundWork = 3e6;             // of the relaxation, per setting, on large clusters
constexpr double kMediumBoundWork = 4e5;       // the same on others ..
constexpr double kLittleBoundWork = 2e5;       // .. and on small ones
constexpr std::int64_t kNodes = 20'000;        // of branch and bound, per setting
constexpr std::int64_t kFewNodes = 1'000;      // the same for models that it cannot finish
constexpr int kEnumerable = 8;                 // devices
constexpr int kShortChain = 12;                // units
constexpr int kKept = 5;                       // plans, however few are asked for
// Budgets of the settings that make the gap are multiplied by 4 until it is below this, or as the
// size of the cluster allows: so many times the first budget, for all settings together.
constexpr double kGoodEnough = 0.01;
constexpr double kGoodEnoughAlike = 0.03;  // the same on equal devices, after the first four times
constexpr int kManyDevices = 128;          // at least
constexpr double kEffortPerDevice = 0.5;
constexpr double kMediumEffort = 14;   // the same on clusters that are not large ..
constexpr double kLittleEffort = 40;   // .. and on those of few devices; it pays there ..
constexpr double kHopeless = 0.65;     // .. on small ones of several types, up to this gap,
constexpr int kFewDevices = 32;        // .. on up to so many others
constexpr double kNearlyClosed = 0.1;  // .. up to this gap,
constexpr double kPoorPlan = 0.3;      // .. or from this gap on, where it is the plan that is poor
constexpr double kMostEffort = 384;
constexpr double kAbove = 1.15;      // what the search adds to a bound, at most, if the gap is wide
constexpr double kWorthwhile = 0.9;  // a round that leaves more of the gap is the last

class AutoSearch {
 public:
  explicit AutoSearch(const SearchContext& context)
      : context_(context),
        deadline_(std::chrono::steady_clock::now() +
                  std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                      std::chrono::duration<double>(context.options.time_limit.value))),
        space_(context.problem, context.options.pins),
        schedule_(searched_schedule(context.options.pins)),
        engine_(*context.engine),
        candidates_(context, space_, engine_, schedule_, exact_schedule()),
        found_(engine_, std::max(kKept, context.options.keep)) {}

  SearchResult run() {
    const bool small = is_small();
    sweep_families(0.0, Promising::most);
    sweep_single_stages();
    sweep(0.05, 0.15, [this](Candidate& c, Shortlist& found) { label_pass(c, found, kBeam, 1); });
    sweep_families(0.15, Promising::less);
    const bool mixed = space_.pools().size() > 1;
    if (small && mixed) ask_peers();
    search_best_first(Seconds(HUGE_VAL), true);
    if (exact_schedule()) close_gap();
    if (small && !mixed) ask_peers();
    if (small && is_enumerable() && exact_schedule())
      sweep(0.6, 1.0, [this](Candidate& c, Shortlist& found) { exact_pass(c, found); });
    if (!small || !is_enumerable())
      improve(context_, space_, engine_, found_, [this] { return stop(); });
    drop_idle_zero();
    SearchResult result;
    // On equal devices, unless the best of all plans is wanted and can be had.
    const bool prefers_regular = space_.pools().size() == 1 && !is_enumerable();
    result.plans = prefers_regular ? found_.regular_first() : found_.plans();
    const auto asked = static_cast<std::size_t>(context_.options.keep);
    if (result.plans.size() > asked) result.plans.resize(asked);
    result.evaluations = found_.evaluations();
    result.nearest = found_.nearest();
    result.cut_short = stopped_;
    if (!found_.empty()) result.lower_bound = lower_bound();
    result.searched_whole_space = small && is_enumerable();
    return result;
  }

 private:
  bool stop() const {
    return context_.stop.stop_requested() || std::chrono::steady_clock::now() > deadline_;
  }

  bool is_small() const { return context_.problem.cluster.device_count() <= kExactDevices; }
  // Whether `exhaustive` comes to an end, whose plans are all under one schedule.
  bool is_enumerable() const {
    return context_.problem.cluster.device_count() <= kEnumerable ||
           context_.problem.model.unit_count() <= kShortChain;
  }
  bool is_large() const { return context_.problem.cluster.device_count() >= kManyDevices; }

  // Runs `pass` on the candidates that may still hold something better, and whose bound is below
  // `limit`, round by round.
  template <typename Pass>
  void sweep(double from, double to, const Pass& pass, Seconds limit = Seconds(HUGE_VAL)) {
    sweep(candidates_.pipelined(), from, to, pass, limit);
  }
  template <typename Pass>
  void sweep(std::vector<Candidate>& candidates, double from, double to, const Pass& pass,
             Seconds limit = Seconds(HUGE_VAL)) {
    const int count = static_cast<int>(candidates.size());
    for (int first = 0; first < count; first += kRound) {
      std::vector<int> round;
      for (int i = first; i < std::min(count, first + kRound); ++i)
        if (!candidates[i].exact && candidates[i].bound < std::min(limit, wanted(found_)))
          round.push_back(i);
      run_round(candidates, round, pass);
      if (context_.on_progress)
        context_.on_progress(from + (to - from) * std::min(1.0, (first + kRound) / (count + 0.0)));
    }
  }

  template <typename Pass>
  void run_round(std::vector<Candidate>& candidates, const std::vector<int>& round,
                 const Pass& pass) {
    std::vector<Shortlist> results(round.size(), found_.without_counts());
    parallel_for(static_cast<int>(round.size()), context_.options.threads, [&](int i) {
      if (!stop()) pass(candidates[round[i]], results[i]);
    });
    const Seconds before = found_.best();
    for (const Shortlist& result : results) found_.merge(result);
    if (stop()) stopped_ = true;
    if (context_.on_improvement && found_.best() < before)
      context_.on_improvement(found_.plans().front());
  }

  // Runs `pass` on the candidates that hold the bound down, lowest first, until no other one does
  // than those that it has been run on.
  template <typename Pass>
  void sweep_lowest(const Pass& pass) {
    std::set<int> done;
    for (std::vector<int> open; !stop();) {
      open = candidates_.lowest_open(done, wanted(found_));
      if (open.empty()) return;
      done.insert(open.begin(), open.end());
      run_round(candidates_.pipelined(), open, pass);
    }
  }

  void sweep_families(double from, Promising which) {
    sweep(from, from + 0.05, [&](Candidate& c, Shortlist& found) { family_pass(c, which, found); });
  }

  // Settings that allow one stage only are searched to the end at once; for the best plan, or for
  // all that are kept when there is nothing else to keep.
  void sweep_single_stages() {
    sweep(candidates_.single_stages(), 0.05, 0.05, [this](Candidate& c, Shortlist& found) {
      const Seconds limit = candidates_.pipelined().empty() ? found.worst_kept() : wanted(found);
      c.bound = single_stage_plans(space_, engine_, {c.settings, schedule_, limit}, found,
                                   [this] { return stop(); });
      c.exact = c.bound > Seconds(0);
    });
  }

  // Bounds, then the search that they guide, with each candidate's budgets.
  void search_best_first(Seconds limit, bool is_first = false) {
    if (exact_schedule() && is_first && may_be_far())
      tighten_bounds();
    else if (exact_schedule())
      sweep(
          0.2, 0.3, [this](Candidate& c, Shortlist& found) { bound_pass(c, found); }, limit);
    const auto labels = [this](Candidate& c, Shortlist& found) {
      label_pass(c, found, 0, c.effort);
    };
    lowest_only_ = is_first && exact_schedule() && is_far();
    if (lowest_only_)
      sweep_lowest(labels);
    else
      sweep(0.3, 0.6, labels, limit);
  }

  // Where the lowest bounds turn out to be far from the best plan, the others need not be higher.
  void tighten_bounds() {
    std::vector<Candidate>& all = candidates_.pipelined();
    std::vector<int> round = candidates_.lowest_open({}, wanted(found_));
    const std::set<int> lowest(round.begin(), round.end());
    Seconds enough(HUGE_VAL);
    const auto tighten = [&](Candidate& c, Shortlist& found) { bound_pass(c, found, enough); };
    run_round(all, round, tighten);
    Seconds bound = wanted(found_);
    for (const int i : lowest) bound = std::min(bound, all[i].bound);
    if (wanted(found_) >= (1 + kPoorPlan) * bound) enough_ = enough = kAbove * bound;
    round.clear();
    for (int i = 0; i < static_cast<int>(all.size()); ++i)
      if (!lowest.contains(i) && all[i].bound < std::min(wanted(found_), enough))
        round.push_back(i);
    run_round(all, round, tighten);
  }

  // Whether the gap is so wide that the search for the bound's sake will hardly find a better plan.
  bool is_far() const { return may_be_far() && wanted(found_) >= (1 + kPoorPlan) * lower_bound(); }
  bool may_be_far() const {
    if (found_.empty() || context_.problem.cluster.device_count() > kFewDevices) return false;
    return !is_small() || space_.pools().size() > 1;
  }

  // Whether more effort is likely to find a better plan or to close the gap.
  bool may_close(double gap) const {
    if (is_small()) return space_.pools().size() > 1 && gap <= kHopeless;
    return context_.problem.cluster.device_count() > kFewDevices || gap <= kNearlyClosed ||
           gap >= kPoorPlan;
  }

  // More of it for the candidates in the lower half of the gap, again and again.
  void close_gap() {
    double effort =
        std::min(kMostEffort, kEffortPerDevice * context_.problem.cluster.device_count());
    if (!is_large())
      effort =
          context_.problem.cluster.device_count() > kFewDevices ? kMediumEffort : kLittleEffort;
    if (!is_large() && !std::isfinite(wanted(found_).value)) return;
    const bool alike = space_.pools().size() == 1;
    for (double before = HUGE_VAL; !stop();) {
      const bool again = before < HUGE_VAL;
      if (is_within(alike && again ? kGoodEnoughAlike : kGoodEnough)) break;
      const double gap = wanted(found_) / lower_bound() - 1;
      if (gap > kWorthwhile * before || !may_close(gap)) break;
      const Seconds middle = 0.5 * (lower_bound() + wanted(found_));
      if (enough_ < middle) {  // more was not asked for so far
        const Seconds asked = std::exchange(enough_, Seconds(HUGE_VAL));
        sweep(
            0.2, 0.3,
            [&](Candidate& c, Shortlist& found) {
              if (c.bound >= asked) bound_pass(c, found);
            },
            middle);
        continue;
      }
      before = gap;
      const Seconds limit = candidates_.raise_efforts(middle, lowest_only_, effort);
      if (effort < 0) break;
      search_best_first(limit);
    }
  }

  // Plans that are as fast without ZeRO go without.
  void drop_idle_zero() {
    if (context_.options.pins.zero) return;
    const std::vector<RankedPlan> best = found_.plans();
    for (const RankedPlan& ranked : best) {
      if (ranked.plan.zero != ZeroStage::optimizer) continue;
      Plan plain = ranked.plan;
      plain.zero = ZeroStage::off;
      const Estimate cost = engine_.simulate(plain);
      if (cost.fits && cost.step <= ranked.cost.step) found_.offer(plain);
    }
  }

  // No plan of the space is faster, under the schedule that is searched.
  Seconds lower_bound() const { return std::min(found_.best(), candidates_.lowest_bound()); }
  bool is_within(double gap) const { return lower_bound() >= (1 - gap) * wanted(found_); }

  // What a plan must beat.
  Seconds wanted(const Shortlist& found) const {
    return std::min(found.best(), context_.options.cutoff);
  }

  // The planners of other people's papers cut and place stages in their own ways; on slow networks,
  // which the label search does not see, they are now and then the better ones.
  void ask_peers() {
    // On equal devices their plans are plans of the space, and its bounds hold for them.
    const bool bounded = space_.pools().size() == 1 && exact_schedule();
    std::set<int> open;
    for (const Candidate& c : candidates_.pipelined())
      if (bounded && c.bound < wanted(found_)) open.insert(c.settings.micro_batches);
    if (!bounded)
      for (const int m : divisors_of(context_.problem.job.global_batch))
        if (is_promising(context_, m)) open.insert(m);
    for (const Plan& plan : plans_of_peers(context_, engine_, {open.begin(), open.end()},
                                           wanted(found_), [this] { return stop(); }))
      found_.offer(plan);
  }

  void offer(const Pipelined& pipeline, const Candidate& c, Shortlist& found) {
    for (const Plan& plan : space_.plans_of(pipeline.stages, c.settings)) found.offer(plan);
  }

  // Whether what is searched is what is simulated; else a pipeline that is slower than the
  // incumbent under 1F1B may be faster under the pinned schedule, and nothing may be cut off.
  bool exact_schedule() const {
    return !context_.options.pins.schedule || *context_.options.pins.schedule == schedule_;
  }
  Seconds incumbent(const Shortlist& found) const {
    return exact_schedule() ? wanted(found) : Seconds(HUGE_VAL);
  }

  void family_pass(Candidate& c, Promising which, Shortlist& found) {
    for (const Pipelined& pipeline :
         families(space_, *c.menu, which, incumbent(found), [this] { return stop(); }))
      offer(pipeline, c, found);
  }

  void label_pass(Candidate& c, Shortlist& found, int width, int effort) {
    LabelOptions options;
    options.width = width;
    options.evaluations = (is_small() ? 1 : effort) * kEvaluations;
    options.incumbent = incumbent(found);
    const LabelResult labels = label_search(space_, *c.menu, options, [this] { return stop(); });
    for (const Pipelined& pipeline : labels.pipelines) offer(pipeline, c, found);
    if (!stop() && exact_schedule()) c.bound = std::max(c.bound, labels.lower_bound);
  }

  void bound_pass(Candidate& c, Shortlist& found, Seconds enough = Seconds(HUGE_VAL)) {
    const double work = c.effort * (is_large()   ? kBoundWork
                                    : is_small() ? kLittleBoundWork
                                                 : kMediumBoundWork);
    c.bound = std::max(c.bound,
                       c.menu->tighten(wanted(found), {work, enough}, [this] { return stop(); }));
  }

  void exact_pass(Candidate& c, Shortlist& found) {
    const bool long_chain = context_.problem.model.unit_count() > kShortChain;
    std::int64_t nodes = long_chain ? kFewNodes : kNodes;
    c.exact = branch_and_bound(space_, *c.menu, found, nodes, [this] { return stop(); });
    // Everything that could be faster than what is kept has been looked at.
    if (c.exact) c.bound = std::max(c.bound, found.best());
  }

  const SearchContext& context_;
  std::chrono::steady_clock::time_point deadline_;
  Space space_;
  Schedule schedule_;
  const CostEngine& engine_;
  Candidates candidates_;
  Shortlist found_;
  Seconds enough_ = Seconds(HUGE_VAL);  // that bounds were asked for
  bool lowest_only_ = false;            // have been searched for the bound
  bool stopped_ = false;
};

}  // namespace

SearchResult search_automatically(const SearchContext& context) {
  const HostOrder order(context.problem.cluster);
  if (order.is_canonical()) return AutoSearch(context).run();
  Problem sorted = context.problem;
  sorted.cluster = order.canonical();
  const CostEngine engine(sorted);
  const SearchContext inner{sorted, context.options,     context.stop,
                            {},     context.on_progress, &engine};
  SearchResult result = AutoSearch(inner).run();
  for (RankedPlan& ranked : result.plans) order.restore(ranked.plan);
  if (result.nearest) order.restore(result.nearest->plan);
  return result;
}

}  // namespace plait
