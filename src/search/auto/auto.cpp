#include <algorithm>
#include <chrono>
#include <set>

#include "base/parallel.h"
#include "search/auto/auto_search.h"
#include "search/auto/branch_and_bound.h"
#include "search/auto/fit_first.h"
#include "search/auto/paper_plans.h"
#include "search/auto/single_stage.h"
#include "search/inside/inside_bound.h"
#include "search/inside/inside_pipelines.h"
#include "search/moves/improve.h"
#include "search/space/planners.h"
#include "search/space/schedules.h"
#include "search/space/worthwhile.h"

namespace plait {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRound = 8;
constexpr int kBeam = 8;
constexpr std::int64_t kEvaluations = 12'000;  // of the best-first search, per setting
constexpr std::int64_t kNodes = 20'000;        // of branch and bound, per setting
constexpr std::int64_t kFewNodes = 1'000;      // the same for models that it cannot finish
constexpr int kEnumerable = 8;                 // devices
constexpr int kShortChain = 12;                // units
constexpr int kMostOps = 1'500;                // that are searched op by op
// Work of moves, relative to the usual.
constexpr double kFirstMoves = 0.25;
constexpr double kThorough = 8;
constexpr int kMostEffortRounds = 8;  // each with twice the work of the one before
constexpr double kProven = 0.002;     // a gap that is not worth closing

Seconds since(Clock::time_point begin) {
  return Seconds(std::chrono::duration<double>(Clock::now() - begin).count());
}

}  // namespace

// What a pass gives: a plan (p), a better bound (b), or both. Settings come in the order of their
// cheap bounds, which listing them computes.
//   layers              p   layers.h: a model by ops is first planned by its layers, whose plans
//                           are plans of the ops as well
//   uniform pools       p   uniform_pool_pipelines.h: pools cut into equal stages, units balanced
//                           over them; the combinations that promise most
//   single stages       pb  single_stage.h: settings that allow no pipeline, searched to the end
//   beam                pb  label_search.h: good pipelines for all device mixes
//   more uniform pools  p   uniform_pool_pipelines.h: the other combinations
//   fit first           p   fit_first.h: anything that fits, where nothing has been found
//   papers              p   paper_plans.h: what other people's planners find, on small clusters.
//                           Before the tight bounds where these do not hold for their plans
//   first moves         p   moves/improve.h, briefly; kept aside, so that what follows is searched
//                           as if they had not been made
//   fewer types         p   a quick search on the faster device types alone: what is found there is
//                           a plan of the whole
//   best first          pb  relaxation.h, label_search.h: tight bounds, and the search they guide
//   close the gap       pb  the same with more effort for the settings that hold the bound down
//   branch and bound    pb  branch_and_bound.h: to the end, where that is near
//   every plan          pb  on very few devices, for targets whose rules the bounds do not know
//   one layout          p   uniform/uniform_search.h: plans with one tensor and one data degree
//   recompute by stage  p   where plans recompute some layers of a stage: a quick search in which
//                           each recomputes all or none
//   fewer nodes         p   a quick search on the first half of the nodes, a quarter of them, .. as
//                           long as their devices could be fast enough; a longer one on numbers of
//                           nodes with small divisors and, where most are idle, on twice those that
//                           are not
//   moves               p   moves/improve.h: the best plans, and regular ones, changed step by step
//                           in all that is free, beyond the space too: schedules, device order,
//                           shares
//   by stage, in full   p   the same as if that were all there is, on few devices that are short of
//                           memory: more freedom is never worse there. After the moves, so that
//                           they begin as they would without it
//   op by op            pb  inside/inside_pipelines.h: degrees and recompute of each op by itself;
//                           what Aceso's search finds so; inside_bound.h
//   bound of all        b   proof.h: of every plan, where more than the space was free: schedules,
//                           or devices in places where the bounds of settings do not have them
//   more effort         pb  the gap and the moves again, with more work
//   idle ZeRO           p   plans that are as fast without ZeRO go without
const std::vector<AutoSearch::Pass>& AutoSearch::passes() {
  using A = AutoSearch;
  using enum Effort;
  static const std::vector<Pass> table{
      {"layers", quick, &A::may_go_by_layers, &A::try_layers},
      {"uniform pools", quick, &A::is_short, &A::try_uniform_pools},
      {"single stages", quick, &A::always, &A::try_single_stages},
      {"beam", quick, &A::is_short, &A::try_beam},
      {"more uniform pools", quick, &A::is_short, &A::try_more_uniform_pools},
      {"fit first", quick, &A::found_nothing, &A::try_to_fit},
      {"papers", quick, &A::is_small_and_mixed, &A::ask_papers},
      {"first moves", quick, &A::is_not_enumerable, &A::move_first},
      {"fewer types", normal, &A::has_slower_types, &A::try_fewer_types},
      {"best first", normal, &A::goes_best_first, &A::search_best_first_at_once},
      {"close the gap", normal, &A::may_close_gap, &A::close_gap},
      {"papers", normal, &A::is_small_and_alike, &A::ask_papers},
      {"branch and bound", normal, &A::may_end, &A::branch_and_bound_all},
      {"every plan", normal, &A::may_list_all, &A::try_every_plan},
      {"one layout", normal, &A::may_have_one_layout, &A::try_one_layout},
      {"recompute by stage", normal, &A::recomputes_some, &A::try_by_stage},
      {"fewer nodes", normal, &A::has_several_nodes, &A::try_fewer_nodes},
      {"moves", normal, &A::may_move, &A::move_best},
      {"by stage, in full", normal, &A::lacks_memory_on_few_devices, &A::try_by_stage_in_full},
      {"op by op", normal, &A::chooses_inside, &A::choose_inside},
      {"bound of all", quick, &A::may_prove, &A::prove},
      {"more effort", thorough, &A::is_not_enumerable, &A::go_on},
      {"idle ZeRO", quick, &A::always, &A::drop_idle_zero},
  };
  return table;
}

AutoSearch::AutoSearch(const SearchContext& context, MemoShelf* memos)
    : context_(context),
      begin_(Clock::now()),
      space_(*context.space),
      schedule_(searched_schedule(context.options.pins)),
      engine_(*context.engine),
      memos_(memos != nullptr ? *memos : own_memos_),
      layers_(seen_by_layers(context.problem.model)),
      candidates_(is_long() ? Candidates() : listed()),
      found_(engine_, std::max(kKept, context.options.keep), context.options.target) {}

SearchResult AutoSearch::run() {
  SearchResult result;
  result.passes.push_back({"settings", since(begin_), 0, found_.best(), lower_bound()});
  for (const Pass& pass : passes())
    if (effort() >= pass.from && (this->*pass.applies)()) run_pass(pass, result.passes);
  // On equal devices, unless the best of all plans is wanted and can be had.
  const bool prefers_regular = !is_mixed() && !is_enumerable();
  result.plans = prefers_regular ? found_.regular_first() : found_.plans();
  const auto asked = static_cast<std::size_t>(context_.options.keep);
  if (result.plans.size() > asked) result.plans.resize(asked);
  result.evaluations = found_.evaluations();
  result.nearest = found_.nearest();
  result.cut_short = stopped_ || !candidates_.is_complete();
  if (!candidates_.is_listed() && !is_free() && !found_.empty())
    floor_ = floor_of_all(context_, engine_, found_.best(), Effort::quick);
  if (!found_.empty()) result.lower_bound = candidates_.is_listed() ? lower_bound() : floor_;
  result.left_space = chooses_inside() || !candidates_.is_listed() || is_not_enumerable();
  if (is_free() || !candidates_.is_listed() || floor_ > Seconds(0)) result.floor = floor_;
  return result;
}

void AutoSearch::run_pass(const Pass& pass, std::vector<PassReport>& reports) {
  const Clock::time_point begin = Clock::now();
  const std::int64_t before = found_.evaluations();
  (this->*pass.run)();
  reports.push_back(
      {pass.name, since(begin), found_.evaluations() - before, found_.best(), lower_bound()});
}

bool AutoSearch::stop() const {
  if (!stopped_ && context_.should_stop()) stopped_ = true;
  return stopped_;
}

// Whether `exhaustive` comes to an end, whose plans are all under one schedule.
bool AutoSearch::is_enumerable() const {
  return devices() <= kEnumerable || context_.problem.model.unit_count() <= kShortChain;
}

// Whether what is searched is what is simulated; else a pipeline that is slower than the incumbent
// under 1F1B may be faster under the pinned schedule, and nothing may be cut off.
bool AutoSearch::exact_schedule() const {
  return !context_.options.pins.schedule || *context_.options.pins.schedule == schedule_;
}

void AutoSearch::sweep(std::vector<Candidate>& candidates, Stretch stretch,
                       const CandidatePass& pass, Seconds limit) {
  const int count = static_cast<int>(candidates.size());
  for (int first = 0; first < count; first += kRound) {
    std::vector<int> round;
    for (int i = first; i < std::min(count, first + kRound); ++i)
      if (!candidates[i].exact && candidates[i].bound < std::min(limit, wanted(found_)))
        round.push_back(i);
    run_round(candidates, round, pass);
    if (context_.on_progress)
      context_.on_progress(stretch.from + (stretch.to - stretch.from) *
                                              std::min(1.0, (first + kRound) / (count + 0.0)));
  }
}

void AutoSearch::run_round(std::vector<Candidate>& candidates, const std::vector<int>& round,
                           const CandidatePass& pass) {
  std::vector<Shortlist> results(round.size(), found_.without_counts());
  parallel_for(static_cast<int>(round.size()), context_.options.threads, [&](int i) {
    if (!stop()) pass(candidates[round[i]], results[i]);
  });
  const Seconds before = found_.best();
  for (const Shortlist& result : results) found_.merge(result);
  if (context_.on_improvement && found_.best() < before)
    context_.on_improvement(found_.plans().front(), found_.evaluations());
}

// A model by ops that is longer is searched by its layers, and then op by op and polished: bounds
// and settings of its ops are not listed, unless layers have no plan.
bool AutoSearch::is_long() const {
  return may_go_by_layers() && context_.problem.model.unit_count() > kMostOps;
}

void AutoSearch::try_uniform_pools() {
  sweep(candidates_.pipelined(), {0.0, 0.05},
        [this](Candidate& c, Shortlist& found) { family_pass(c, Promising::most, found); });
}

void AutoSearch::try_more_uniform_pools() {
  sweep(candidates_.pipelined(), {0.15, 0.2},
        [this](Candidate& c, Shortlist& found) { family_pass(c, Promising::less, found); });
}

// For the best plan, or for all that are kept when there is nothing else to keep.
void AutoSearch::try_single_stages() {
  sweep(candidates_.single_stages(), {0.05, 0.05}, [this](Candidate& c, Shortlist& found) {
    const Seconds limit = candidates_.pipelined().empty() ? found.worst_kept() : wanted(found);
    c.bound = single_stage_plans(space_, engine_, {c.settings, schedule_, limit}, found,
                                 [this] { return stop(); });
    c.exact = c.bound > Seconds(0);
  });
}

void AutoSearch::try_beam() {
  sweep(candidates_.pipelined(), {0.05, 0.15},
        [this](Candidate& c, Shortlist& found) { label_pass(c, found, kBeam, 1); });
}

void AutoSearch::try_to_fit() {
  is_tight_ = true;
  sweep(candidates_.pipelined(), {0.2, 0.2}, [this](Candidate& c, Shortlist& found) {
    if (const auto pipeline = fit_first(space_, *c.table, [this] { return stop(); }))
      offer(*pipeline, c, found);
  });
}

// The planners of other people's papers cut and place stages in their own ways; on slow networks,
// which the label search does not see, they are now and then the better ones.
void AutoSearch::ask_papers() {
  // On equal devices their plans are plans of the space, and its bounds hold for them.
  const bool bounded = !is_mixed() && exact_schedule();
  std::set<int> open;
  for (const Candidate& c : candidates_.pipelined())
    if (bounded && c.bound < wanted(found_)) open.insert(c.settings.micro_batches);
  if (!bounded)
    for (const int m : divisors_of(context_.problem.job.global_batch))
      if (is_promising(context_, m)) open.insert(m);
  for (const Plan& plan : plans_of_papers(context_, {open.begin(), open.end()}, wanted(found_),
                                          [this] { return stop(); }))
    if (found_.empty() || !stop()) found_.offer(plan);
}

void AutoSearch::branch_and_bound_all() {
  sweep(candidates_.pipelined(), {0.6, 1.0},
        [this](Candidate& c, Shortlist& found) { exact_pass(c, found); });
}

void AutoSearch::move_first() {
  Shortlist& aside = aside_.emplace(found_.without_counts());
  improve(context_, space_, engine_, memos_, aside, {.work = kFirstMoves},
          [this] { return stop(); });
  if (effort() == Effort::quick) found_.merge(aside);
}

void AutoSearch::move_best() {
  lacks_memory_ = lacks_memory();
  improve(context_, space_, engine_, memos_, found_, {}, [this] { return stop(); });
  if (aside_) found_.merge(*aside_);
  lacks_memory_ = lacks_memory_ || lacks_memory();
}

bool AutoSearch::chooses_inside() const { return may_choose_inside(context_); }

void AutoSearch::choose_inside() {
  offer_insides(context_, found_, [this] { return stop(); });
  SearchContext quiet = context_;
  quiet.on_improvement = {};
  quiet.on_progress = {};
  if (stop()) return;
  for (const RankedPlan& ranked : search_like_aceso(quiet).plans) found_.offer(ranked.plan);
  if (!stop() && !found_.empty() && may_bound_insides(context_))
    floor_ = std::max({floor_, floor_of_all(context_, engine_, found_.best(), Effort::quick),
                       least_step_inside(context_, found_.best())});
}

void AutoSearch::prove() { prove_with(std::min(effort(), Effort::normal)); }

void AutoSearch::prove_with(Effort effort) {
  floor_ = std::max(floor_, floor_of_all(context_, engine_, found_.best(), effort));
}

// From what was found so far, with other random numbers: nothing is lost.
void AutoSearch::go_on() {
  double work = kThorough;
  for (int round = 1; !has_reached_target() && !stop(); ++round) {
    if (may_close_gap()) close_gap_with(work * effort_for_gap());
    improve(context_, space_, engine_, memos_, found_, {.work = work, .series = round},
            [this] { return stop(); });
    if (is_free() && round == 1) prove_with(Effort::prove);
    if (effort() != Effort::prove || round == kMostEffortRounds) return;
    work *= 2;
  }
}

Effort AutoSearch::effort() const { return effort_of(context_.options); }

bool AutoSearch::has_reached_target() const {
  const double gap = context_.options.target_gap.value_or(kProven);
  return found_.best() <= (1 + gap) * proven_bound();
}

void AutoSearch::drop_idle_zero() {
  if (context_.options.pins.zero) return;
  const std::vector<RankedPlan> best = found_.plans();
  for (const RankedPlan& ranked : best) {
    if (ranked.plan.zero != ZeroStage::optimizer || stop()) continue;
    Plan plain = ranked.plan;
    plain.zero = ZeroStage::off;
    const Estimate cost = engine_.simulate(plain);
    if (cost.fits && cost.step <= ranked.cost.step) found_.offer(plain);
  }
}

// However late it is, the first plan counts.
void AutoSearch::offer(const Pipelined& pipeline, const Candidate& c, Shortlist& found) {
  for (const Plan& plan : space_.plans_of(pipeline.stages, c.settings))
    if (found.empty() || !stop()) found.offer(plan);
}

void AutoSearch::family_pass(Candidate& c, Promising which, Shortlist& found) {
  for (const Pipelined& pipeline :
       uniform_pool_pipelines(space_, *c.table, which, incumbent(found), [this] { return stop(); }))
    offer(pipeline, c, found);
}

void AutoSearch::label_pass(Candidate& c, Shortlist& found, int width, int effort) {
  LabelOptions options;
  options.width = width;
  options.evaluations = (is_small() ? 1 : effort) * kEvaluations;
  options.incumbent = incumbent(found);
  const LabelResult labels = label_search(space_, *c.table, options, [this] { return stop(); });
  for (const Pipelined& pipeline : labels.pipelines) offer(pipeline, c, found);
  if (!stop() && exact_schedule()) c.bound = std::max(c.bound, labels.lower_bound);
}

void AutoSearch::exact_pass(Candidate& c, Shortlist& found) {
  const bool long_chain = context_.problem.model.unit_count() > kShortChain;
  std::int64_t nodes = long_chain ? kFewNodes : kNodes;
  c.exact = branch_and_bound(space_, *c.table, found, nodes, [this] { return stop(); });
  // Everything that could be faster than what is kept has been looked at.
  if (c.exact) c.bound = std::max(c.bound, found.best());
}

}  // namespace plait
