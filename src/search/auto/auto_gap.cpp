#include <algorithm>
#include <set>
#include <utility>

#include "search/auto/auto_search.h"

// The passes that raise the bound and, guided by it, find better plans; and how much effort that is
// worth.
namespace plait {
namespace {

constexpr double kBoundWork = 3e6;        // of the relaxation, per setting, on large clusters
constexpr double kMediumBoundWork = 4e5;  // the same on others ..
constexpr double kLittleBoundWork = 2e5;  // .. and on small ones
// Runs grow with the square of the units, and so must the work for as many evaluations; models by
// layers are mostly shorter than this.
constexpr double kUsualUnits = 160;
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

}  // namespace

bool AutoSearch::is_large() const { return devices() >= kManyDevices; }

void AutoSearch::search_best_first_at_once() { search_best_first(Seconds(HUGE_VAL), true); }

void AutoSearch::search_best_first(Seconds limit, bool is_first) {
  if (exact_schedule() && is_first && may_be_far())
    tighten_bounds();
  else if (exact_schedule())
    sweep(
        candidates_.pipelined(), {0.2, 0.3},
        [this](Candidate& c, Shortlist& found) { bound_pass(c, found); }, limit);
  const auto labels = [this](Candidate& c, Shortlist& found) { label_pass(c, found, 0, c.effort); };
  lowest_only_ = is_first && exact_schedule() && is_far();
  if (lowest_only_)
    sweep_lowest(labels);
  else
    sweep(candidates_.pipelined(), {0.3, 0.6}, labels, limit);
}

void AutoSearch::sweep_lowest(const CandidatePass& pass) {
  std::set<int> done;
  for (std::vector<int> open; !stop();) {
    open = candidates_.lowest_open(done, wanted(found_));
    if (open.empty()) return;
    done.insert(open.begin(), open.end());
    run_round(candidates_.pipelined(), open, pass);
  }
}

// Where the lowest bounds turn out to be far from the best plan, the others need not be higher.
void AutoSearch::tighten_bounds() {
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
    if (!lowest.contains(i) && all[i].bound < std::min(wanted(found_), enough)) round.push_back(i);
  run_round(all, round, tighten);
}

void AutoSearch::bound_pass(Candidate& c, Shortlist& found, Seconds enough) {
  const double work = c.effort * (is_large()   ? kBoundWork
                                  : is_small() ? kLittleBoundWork
                                               : kMediumBoundWork);
  const double longer = std::max(1.0, context_.problem.model.unit_count() / kUsualUnits);
  c.bound = std::max(c.bound, c.table->tighten(wanted(found), {work * longer * longer, enough},
                                               [this] { return stop(); }));
}

// Whether the gap is so wide that the search for the bound's sake will hardly find a better plan.
bool AutoSearch::is_far() const {
  return may_be_far() && wanted(found_) >= (1 + kPoorPlan) * lower_bound();
}

bool AutoSearch::may_be_far() const {
  if (found_.empty() || devices() > kFewDevices) return false;
  return !is_small() || is_mixed();
}

// Whether more effort is likely to find a better plan or to close the gap.
bool AutoSearch::may_close(double gap) const {
  if (is_small()) return is_mixed() && gap <= kHopeless;
  return devices() > kFewDevices || gap <= kNearlyClosed || gap >= kPoorPlan;
}

double AutoSearch::effort_for_gap() const {
  if (is_large()) return std::min(kMostEffort, kEffortPerDevice * devices());
  return devices() > kFewDevices ? kMediumEffort : kLittleEffort;
}

// More of it for the candidates in the lower half of the gap, again and again.
void AutoSearch::close_gap() { close_gap_with(effort_for_gap()); }

void AutoSearch::close_gap_with(double effort) {
  if (!is_large() && !std::isfinite(wanted(found_).value)) return;
  for (double before = HUGE_VAL; !stop();) {
    const bool again = before < HUGE_VAL;
    if (is_within(!is_mixed() && again ? kGoodEnoughAlike : kGoodEnough)) break;
    const double gap = wanted(found_) / lower_bound() - 1;
    if (gap > kWorthwhile * before || !may_close(gap)) break;
    const Seconds middle = 0.5 * (lower_bound() + wanted(found_));
    if (enough_ < middle) {  // more was not asked for so far
      const Seconds asked = std::exchange(enough_, Seconds(HUGE_VAL));
      sweep(
          candidates_.pipelined(), {0.2, 0.3},
          [&](Candidate& c, Shortlist& found) {
            if (c.bound >= asked) bound_pass(c, found);
          },
          middle);
      continue;
    }
    before = gap;
    const Seconds limit = candidates_.raise_efforts(middle, lowest_only_, effort);
    if (effort < 0) break;
    search_best_first(limit, false);
  }
}

}  // namespace plait
