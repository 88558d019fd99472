#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>

#include "base/parallel.h"
#include "search/branch_and_bound.h"
#include "search/families.h"
#include "search/label_search.h"
#include "search/planners.h"
#include "search/schedules.h"
#include "search/shortlist.h"
#include "search/space.h"
#include "search/stage_menu.h"

// plait's own planner, in passes over the settings (micro-batches, ZeRO, context, expert):
//   1. bound: what no plan with these settings can beat; settings are taken in that order;
//   2. families: pools cut into equal stages, units balanced over them;
//   3. label search, as a beam and then best first: good pipelines for all device mixes, and a
//      tighter bound;
//   4. what the peers' planners find (on small clusters);
//   5. branch and bound (on small clusters), as far as its budget of nodes goes: the exact optimum
//   of the space.
// Settings are searched in rounds of fixed size; all of a round start from the same incumbent, so
// the result does not depend on the number of threads.
namespace plait {
namespace {

constexpr int kRound = 8;
constexpr std::size_t kFamilies = 4;  // simulated per setting
constexpr int kBeam = 8;
constexpr std::int64_t kEvaluations = 12'000;  // of the best-first search, per setting
constexpr double kBoundWork = 3e6;             // of the relaxation, per setting
constexpr std::int64_t kPeerPlans = 6'000;     // of each peer, on small clusters
constexpr std::int64_t kNodes = 20'000;        // of branch and bound, per setting

struct Candidate {
  PlanSettings settings;
  std::unique_ptr<StageMenu> menu;
  Seconds bound;  // no plan with these settings is faster
  bool exact = false;
};

class AutoSearch {
 public:
  explicit AutoSearch(const SearchContext& context)
      : context_(context),
        space_(context.problem, context.options.pins),
        schedule_(searched_schedule(context.options.pins)),
        engine_(context.problem),
        found_(engine_, context.options.keep),
        deadline_(std::chrono::steady_clock::now() +
                  std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                      std::chrono::duration<double>(context.options.time_limit.value))) {}

  SearchResult run() {
    list_candidates();
    const bool small = context_.problem.cluster.device_count() <= kExactDevices;
    sweep(0.0, 0.1, [this](Candidate& c, Shortlist& found) { family_pass(c, found); });
    sweep(0.1, 0.2, [this](Candidate& c, Shortlist& found) { label_pass(c, found, kBeam); });
    if (exact_schedule())
      sweep(0.2, 0.3, [this](Candidate& c, Shortlist& found) { bound_pass(c, found); });
    sweep(0.3, 0.6, [this](Candidate& c, Shortlist& found) { label_pass(c, found, 0); });
    if (small) ask_peers();
    if (small && exact_schedule())
      sweep(0.6, 1.0, [this](Candidate& c, Shortlist& found) { exact_pass(c, found); });
    SearchResult result;
    result.plans = found_.plans();
    result.evaluations = found_.evaluations();
    result.nearest = found_.nearest();
    result.cut_short = stopped_;
    Seconds bound = found_.best();
    for (const Candidate& c : candidates_) bound = std::min(bound, c.bound);
    if (!found_.empty()) result.lower_bound = bound;
    return result;
  }

 private:
  bool stop() const {
    return context_.stop.stop_requested() || std::chrono::steady_clock::now() > deadline_;
  }

  void list_candidates() {
    const std::vector<int>& promising = context_.options.promising_micro_batches;
    for (const PlanSettings& settings : space_.settings())
      if (promising.empty() || std::ranges::binary_search(promising, settings.micro_batches))
        candidates_.push_back({settings, nullptr, {}, false});
    parallel_for(static_cast<int>(candidates_.size()), context_.options.threads, [&](int i) {
      Candidate& c = candidates_[i];
      c.menu = std::make_unique<StageMenu>(space_, engine_, c.settings, schedule_);
      c.bound = c.menu->bounds().any_step();
    });
    std::erase_if(candidates_, [](const Candidate& c) { return c.menu->options().empty(); });
    std::ranges::stable_sort(candidates_, {}, [](const Candidate& c) { return c.bound; });
  }

  // Runs `pass` on the candidates that may still hold something better, round by round.
  template <typename Pass>
  void sweep(double from, double to, const Pass& pass) {
    const int count = static_cast<int>(candidates_.size());
    for (int first = 0; first < count; first += kRound) {
      std::vector<int> round;
      for (int i = first; i < std::min(count, first + kRound); ++i)
        if (!candidates_[i].exact && candidates_[i].bound < wanted(found_)) round.push_back(i);
      std::vector<Shortlist> results(round.size(), found_without_counts());
      parallel_for(static_cast<int>(round.size()), context_.options.threads, [&](int i) {
        if (!stop()) pass(candidates_[round[i]], results[i]);
      });
      const Seconds before = found_.best();
      for (const Shortlist& result : results) found_.merge(result);
      if (stop()) stopped_ = true;
      if (context_.on_improvement && found_.best() < before)
        context_.on_improvement(found_.plans().front());
      if (context_.on_progress)
        context_.on_progress(from + (to - from) * std::min(1.0, (first + kRound) / (count + 0.0)));
    }
  }

  // What a plan must beat.
  Seconds wanted(const Shortlist& found) const {
    return std::min(found.best(), context_.options.cutoff);
  }

  // The plans so far, as the incumbents of a task that counts its own evaluations.
  Shortlist found_without_counts() const {
    Shortlist copy(engine_, context_.options.keep);
    copy.start_from(found_);
    return copy;
  }

  // The planners of other people's papers cut and place stages in their own ways; on slow networks,
  // which the label search does not see, they are now and then the better ones.
  void ask_peers() {
    SearchContext quiet{context_.problem, context_.options, context_.stop, {}, {}};
    quiet.options.max_evaluations = kPeerPlans;
    for (const auto& search : {search_like_amp, search_like_fasop, search_like_metis}) {
      if (stop()) return;
      for (const RankedPlan& ranked : search(quiet).plans) found_.offer(ranked.plan);
    }
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

  void family_pass(Candidate& c, Shortlist& found) {
    std::vector<Pipelined> pipelines =
        families(space_, *c.menu, incumbent(found), [this] { return stop(); });
    std::ranges::stable_sort(pipelines, {}, &Pipelined::length);
    if (pipelines.size() > kFamilies) pipelines.resize(kFamilies);
    for (const Pipelined& pipeline : pipelines) offer(pipeline, c, found);
  }

  void label_pass(Candidate& c, Shortlist& found, int width) {
    LabelOptions options;
    options.width = width;
    options.evaluations = kEvaluations;
    options.incumbent = incumbent(found);
    const LabelResult labels = label_search(space_, *c.menu, options, [this] { return stop(); });
    for (const Pipelined& pipeline : labels.pipelines) offer(pipeline, c, found);
    if (!stop() && exact_schedule()) c.bound = std::max(c.bound, labels.lower_bound);
  }

  void bound_pass(Candidate& c, Shortlist& found) {
    c.bound = std::max(c.bound, c.menu->tighten(wanted(found), kBoundWork));
  }

  void exact_pass(Candidate& c, Shortlist& found) {
    std::int64_t nodes = kNodes;
    c.exact = branch_and_bound(space_, *c.menu, found, nodes, [this] { return stop(); });
    // Everything that could be faster than what is kept has been looked at.
    if (c.exact) c.bound = std::max(c.bound, found.best());
  }

  const SearchContext& context_;
  Space space_;
  Schedule schedule_;
  CostEngine engine_;
  Shortlist found_;
  std::chrono::steady_clock::time_point deadline_;
  std::vector<Candidate> candidates_;
  bool stopped_ = false;
};

}  // namespace

SearchResult search_automatically(const SearchContext& context) {
  return AutoSearch(context).run();
}

}  // namespace plait
