#include <algorithm>
#include <cmath>
#include <vector>

#include "search/bound/proof.h"
#include "search/bound/stage_table.h"
#include "search/space/planners.h"
#include "search/space/schedules.h"
#include "search/space/shortlist.h"
#include "search/space/space.h"

// The oracle: every plan of the space, each one simulated. No bound, no dominance, no shortcut; the
// only plans that are not simulated are those that do not fit, and, where there is a cutoff, those
// whose closed form is above it.
namespace plait {
namespace {

constexpr double kTie = 1e-12;                 // sums in another order; a bound may still be a tie
constexpr std::int64_t kTriedForEach = 1'000;  // stages, of every plan that may be simulated

class Enumeration {
 public:
  Enumeration(const SearchContext& context, const Space& space, StageTable& table, Shortlist& found)
      : context_(context),
        space_(space),
        table_(table),
        found_(found),
        cutoff_(context.options.cutoff),
        used_(space.pools().size(), 0) {}

  void run() {
    if (!has_cutoff() || !is_too_slow(table_.bounds().any_step()))
      extend(space_.problem().model.unit_count(), {}, 0);
  }
  bool stopped() const { return stopped_; }

 private:
  // A stage in front of those that are there.
  struct Next {
    int option = 0;
    std::vector<int> begin;
    Seconds send;  // to the stage after it
  };

  bool has_cutoff() const { return std::isfinite(cutoff_.value); }
  bool is_too_slow(Seconds bound) const {
    return bound > (1 + kTie) * std::min(cutoff_, found_.worst_kept());
  }

  // Adds a stage that ends before unit `end`; `first`: the option of the first stage that is there.
  void extend(int end, const PipelineSuffix& tail, int first) {
    const int after = static_cast<int>(stages_.size());
    if (after >= space_.max_stages(table_.settings())) return;
    for (int o = 0; o < static_cast<int>(table_.options().size()) && !looked(); ++o) {
      const std::vector<int> before = used_;
      Next next{o, {}, {}};
      if (!table_.take(o, used_, next.begin)) continue;
      if (has_cutoff() && after > 0) next.send = table_.hand_over(o, first, end);
      for (int from = end - 1; from >= 0 && !looked(); --from) {
        const UnitRange units{from, end};
        if (has_cutoff() && is_too_slow(longer(tail, next, alone(next, units)).length())) break;
        if (space_.allows(units, after)) try_units(next, units, tail);
      }
      used_ = before;
    }
  }

  StageTime alone(const Next& next, const UnitRange& units) {
    return table_.runs(next.option, next.begin).alone(units);
  }
  PipelineSuffix longer(PipelineSuffix tail, const Next& next, const StageTime& stage) const {
    tail.prepend(stage, next.send, table_.rhythm());
    return tail;
  }
  bool is_hopeless(const PipelineSuffix& tail, int left) {
    if (!has_cutoff()) return false;
    if (left == 0) return is_too_slow(tail.step());
    table_.bounds().set_rest(used_, rest_);
    return is_too_slow(table_.bounds().step(tail, left, rest_, Seconds(0)));
  }

  void try_units(const Next& next, const UnitRange& units, const PipelineSuffix& tail) {
    const int after = static_cast<int>(stages_.size());
    const RunCosts& runs = table_.runs(next.option, next.begin);
    if (has_cutoff() && is_hopeless(longer(tail, next, runs.alone(units)), units.begin)) return;
    for (const UnitsRecomputed& recompute : recomputes_of(units)) {
      count_stage();
      if (looked()) return;
      if (!runs.fits(units, recompute, after)) continue;
      PipelineSuffix whole;
      if (has_cutoff()) whole = longer(tail, next, runs.cost(units, recompute));
      if (is_hopeless(whole, units.begin)) continue;
      stages_.push_back({table_.options()[next.option], next.begin, units, recompute});
      if (units.begin == 0)
        finish();
      else
        extend(units.begin, whole, next.option);
      stages_.pop_back();
    }
  }

  // Long before there is a whole plan there may be many stages that do not fit.
  void count_stage() {
    const std::int64_t limit = context_.options.max_evaluations;
    stopped_ |= has_cutoff() && limit > 0 && ++tried_ >= kTriedForEach * limit;
  }

  // At the clock, now and then: whether it is over.
  bool looked() {
    if (++looks_ % 256 == 0) stopped_ |= context_.should_stop();
    return stopped_;
  }

  std::vector<UnitsRecomputed> recomputes_of(const UnitRange& units) const {
    std::vector<UnitsRecomputed> all;
    if (const auto layers = space_.pins().recompute_layers)
      return {first_layers(space_.problem().model, units, *layers)};
    for (const Recompute recompute : space_.recomputes())
      all.push_back(UnitsRecomputed::all(recompute));
    // Where all stages must be alike the shortlist takes no others.
    if (space_.target().recompute_layers == RecomputeLayers::same || all.size() == 1) return all;
    const Model& model = space_.problem().model;
    const auto ends_layer = [&](int n) {
      const int end = units.begin + n;
      return end == units.end || model.unit(end).starts_layer;
    };
    const auto has = [&](Recompute kind) {
      return std::ranges::find(space_.recomputes(), kind) != space_.recomputes().end();
    };
    const int most_full = has(Recompute::full) ? units.size() : 0;
    for (int full = 0; full <= most_full; ++full) {
      const int most = has(Recompute::selective) ? units.size() - full : 0;
      for (int selective = 0; selective <= most; ++selective) {
        const bool is_whole = full == units.size() || selective == units.size();
        const bool is_none = full + selective == 0;
        if (!is_whole && !is_none && ends_layer(full) && ends_layer(full + selective))
          all.push_back({full, selective});
      }
    }
    return all;
  }

  void finish() {
    if (static_cast<int>(stages_.size()) < space_.min_stages()) return;
    const std::vector<PlacedStage> in_order(stages_.rbegin(), stages_.rend());
    for (const Plan& plan : space_.plans_of(in_order, table_.settings()))
      if (found_.offer(plan) && context_.on_improvement)
        context_.on_improvement(found_.plans().front(), found_.evaluations());
    const std::int64_t limit = context_.options.max_evaluations;
    stopped_ |= context_.should_stop() || (limit > 0 && found_.evaluations() >= limit);
  }

  const SearchContext& context_;
  const Space& space_;
  StageTable& table_;
  Shortlist& found_;
  Seconds cutoff_;
  std::vector<int> used_;
  Bounds::Rest rest_;
  std::vector<PlacedStage> stages_;  // last stage of the pipeline first
  std::int64_t tried_ = 0;           // stages
  std::int64_t looks_ = 0;
  bool stopped_ = false;
};

}  // namespace

SearchResult search_exhaustively(const SearchContext& context) {
  const Space& space = *context.space;
  const CostEngine& engine = *context.engine;
  Shortlist found(engine, context.options.keep, context.options.target);
  SearchResult result;
  for (std::size_t i = 0; i < space.settings().size() && !result.cut_short; ++i) {
    StageTable table(space, engine, space.settings()[i], searched_schedule(context.options.pins),
                     [&] { return context.should_stop(); });
    result.cut_short = !table.is_whole();
    if (result.cut_short) break;
    Enumeration enumeration(context, space, table, found);
    enumeration.run();
    result.cut_short = enumeration.stopped();
    if (context.on_progress)
      context.on_progress(static_cast<double>(i + 1) /
                          static_cast<double>(space.settings().size()));
  }
  result.plans = found.plans();
  result.evaluations = found.evaluations();
  if (!result.cut_short && !found.empty()) result.lower_bound = found.best();
  result.searched_whole_space = proves_one_schedule(context);
  return result;
}

}  // namespace plait
