#include "search/moves/improve.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/parallel.h"
#include "plan/check.h"
#include "search/moves/descent.h"
#include "search/moves/layouts.h"

namespace plait {
namespace {

constexpr int kSimulatedOfSchedule = 4;  // starts of each schedule
constexpr double kNear = 1.6;            // starts may be so many times slower than the best
// Work (descent.h) of the first round, and of each one more while they gain enough: a few
// milliseconds on tens of devices. A plan has more neighbours the more devices there are, and each
// takes longer to outline, so that work grows faster than their number. On 20 mixed problems of 16
// to 64 devices that nothing was chosen on (seed 440001) steps are 1.5 % shorter in the mean than
// before walks went on for the sake of the second best and drew all of their moves; with two thirds
// of this work they are 1.2 % shorter, with twice as much 1.8 % in 1.7 times the time.
constexpr double kWork = 15'000;
constexpr double kWorkOfDevices = 150;
constexpr double kWorkOfStages = 375;  // of the best plan
constexpr double kGrowth = 1.5;
constexpr double kMostWork = 500'000;
constexpr double kForStarts = 0.35;     // of it, to look for starts
constexpr double kWorkOfLayout = 0.01;  // to lay it out, for each device
constexpr double kForSchedules = 0.3;   // of that, to look at the best under other schedules
constexpr std::size_t kLayouts = 10;    // that are looked at under other schedules
constexpr double kGoesOn = 0.003;       // gain of a round that is followed by another, relative ..
constexpr double kBehind = 1.05;        // .. of a plan that is at most so many times slower
constexpr int kMostRounds = 24;
// Starts that are followed: one for each so much of the work.
constexpr double kWorkOfStart = 4'000;
constexpr int kFewestFollowed = 2;
constexpr int kMostFollowed = 6;
// Starts are thinned out before they are followed: each gets as much of this part of the work, half
// of them are left, and again. With that, a quarter more work and some for stages, steps of 30
// mixed problems of up to 64 devices (seed 31001) are 1.5 % shorter in the mean; 13 are shorter by
// more than 0.5 %, by 17 % at most, and two are longer, by 2 and 5 %.
constexpr int kMostStarts = 24;
constexpr int kMostLevels = 8;
constexpr double kForThinning = 0.5;
constexpr double kForRegular = 0.2;  // of the first walk's work, for changes of all stages alike
// Long walks may begin with large steps uphill.
constexpr double kHot = 0.03;
constexpr double kWarm = 0.01;
constexpr double kLongWalk = 10'000;

// The best of each schedule, number of stages and tensor degree.
class StartList {
 public:
  void add(Settled settled) {
    int tensor = 1;
    for (const DraftStage& stage : settled.draft.stages) tensor = std::max(tensor, stage.tensor);
    const Key key{settled.draft.settings.schedule, settled.draft.stage_count(), tensor};
    const auto at = best_.find(key);
    if (at == best_.end() || settled.floor() < at->second.floor())
      best_.insert_or_assign(key, std::move(settled));
  }

  // By floor, at most so many of each schedule.
  std::vector<Settled> lowest(int of_schedule) {
    std::vector<Settled> all;
    for (auto& [key, settled] : best_) all.push_back(std::move(settled));
    std::ranges::stable_sort(all, {}, &Settled::floor);
    std::map<Schedule, int> counts;
    std::erase_if(all, [&](const Settled& settled) {
      return ++counts[settled.draft.settings.schedule] > of_schedule;
    });
    return all;
  }

 private:
  using Key = std::tuple<Schedule, int, int>;
  std::map<Key, Settled> best_;
};

class Improvement {
 public:
  Improvement(const SearchContext& context, const Space& space, const CostEngine& engine,
              MemoShelf& memos, Shortlist& found, const Walks& walks,
              const std::function<bool()>& stop)
      : context_(context),
        ground_(space),
        engine_(engine),
        found_(found),
        stop_(stop),
        memos_(memos),
        series_(walks.series) {
    const int devices = context.problem.cluster.device_count();
    const double stages = found.empty() ? 1 : found.plans().front().plan.stage_count();
    const double usual = kWork + kWorkOfDevices * std::pow(devices, kGrowth) +
                         kWorkOfStages * std::pow(stages, kGrowth);
    work_ = walks.work * std::min(kMostWork, usual);
    followed_ = std::clamp(static_cast<int>(work_ / kWorkOfStart), kFewestFollowed, kMostFollowed);
  }

  void run() {
    // What cannot become faster than what is asked for is not worth the work.
    const Seconds cutoff = context_.options.cutoff;
    if (std::isfinite(cutoff.value) && found_.best() >= cutoff) return;
    if (stop_() && !found_.empty()) return;
    std::vector<Settled> all = all_starts();
    for (int level = 0; static_cast<int>(all.size()) > followed_ && !stop_(); ++level)
      thin_out(all, level);
    for (int round = 0; round < kMostRounds && !all.empty() && !stop_(); ++round) {
      const std::vector<Seconds> before = steps_of(all);
      wander(all, round);
      if (!gains(before, steps_of(all))) break;
    }
  }

 private:
  static std::vector<Seconds> steps_of(const std::vector<Settled>& all) {
    std::vector<Seconds> steps;
    for (const Settled& settled : all) steps.push_back(settled.step);
    return steps;
  }

  // Whether some walk that is not far behind the best plan found a faster one.
  bool gains(const std::vector<Seconds>& before, const std::vector<Seconds>& after) const {
    for (std::size_t i = 0; i < after.size(); ++i)
      if (after[i] <= kBehind * found_.best() && after[i] < (1 - kGoesOn) * before[i]) return true;
    return false;
  }

  // A little work on each, and half of them are left: how fast a start is says little of what can
  // be made of it.
  void thin_out(std::vector<Settled>& all, int level) {
    const int count = static_cast<int>(all.size());
    const double work = kForThinning * work_ / count;
    parallel_for(count, context_.options.threads, [&](int i) {
      const MemoShelf::Lent memo = memos_.lend();
      Descent descent(ground_, engine_, *memo, work, stop_);
      const std::uint64_t seed = (std::uint64_t{1} << 32) +
                                 (std::uint64_t{1} * series_ * kMostLevels + level) * kMostStarts +
                                 i;
      descent.wander(all[i], kWarm, seed);
    });
    keep_fastest(all, std::max(followed_, count / 2), level == 0);
    for (const Settled& settled : all) offer(settled);
  }

  // Walks from all of them, side by side; the best first.
  void wander(std::vector<Settled>& all, int round) {
    const int count = static_cast<int>(all.size());
    const double work = (1 - kForStarts) * work_ / count;
    parallel_for(count, context_.options.threads, [&](int i) {
      const MemoShelf::Lent memo = memos_.lend();
      Descent descent(ground_, engine_, *memo, work, stop_);
      const std::uint64_t seed =
          1 + (std::uint64_t{1} * series_ * kMostRounds + round) * kMostFollowed + i;
      if (round == 0) descent.descend_regularly(all[i], kForRegular);
      descent.wander(all[i], work > kLongWalk ? kHot : kWarm, seed);
    });
    keep_fastest(all, followed_);
    for (const Settled& settled : all) offer(settled);
  }

  void offer(const Settled& settled) {
    if (!std::isfinite(settled.step.value)) return;
    const Plan plan = ground_.plan_of(settled.draft);
    if (check_plan(context_.problem, plan).empty()) found_.offer(plan);
  }

  // The plans found so far and regular layouts, under every schedule; of each schedule, number of
  // stages and tensor degree the one with the lowest floor. The fastest of them.
  std::vector<Settled> all_starts() {
    const MemoShelf::Lent memo = memos_.lend();
    Descent descent(ground_, engine_, *memo, kForStarts * work_, stop_);
    StartList list;
    const auto look = [&](const Settled& plain) {
      if (plain.fits()) list.add(plain);
      Visitor others([&](Draft&& other) {
        std::optional<Settled> settled = descent.settle(std::move(other), false);
        if (settled && settled->fits()) list.add(*std::move(settled));
        return descent.is_over();
      });
      moves_of::schedules({ground_, plain.draft, plain.cost}, others);
    };
    for (const auto* plans : {&found_.plans(), &found_.without_bubble()})
      for (const RankedPlan& ranked : *plans)
        if (auto settled = descent.settle(draft_of(ranked.plan), false)) {
          descent.recompute_less(*settled);
          look(*settled);
        }
    for (const Settled& layout : best_layouts(descent)) look(layout);
    std::vector<Settled> starts;
    for (Settled& start : list.lowest(kSimulatedOfSchedule)) {
      if (start.floor() >= kNear * found_.best()) continue;
      if (stop_() && !found_.empty()) break;
      descent.simulate(start);
      offer(start);
      starts.push_back(std::move(start));
    }
    if (!found_.empty())
      if (auto best = descent.settle(draft_of(found_.plans().front().plan), false)) {
        best->step = found_.best();
        starts.push_back(*std::move(best));
      }
    keep_fastest(starts, kMostStarts);
    return starts;
  }

  // Those whose busiest stage has least to do: what a schedule without a bubble would take.
  std::vector<Settled> best_layouts(Descent& descent) const {
    const double reserve = kForSchedules * descent.budget();
    const Layouts layouts(ground_, stop_);
    std::vector<std::pair<Seconds, Settled>> best;
    for (const RegularLayout& layout : layouts.all()) {
      if (descent.budget() < reserve || stop_()) break;
      Draft draft = layouts.draft_of(layout);
      descent.spend(kWorkOfLayout * context_.problem.cluster.device_count());
      if (draft.stages.empty()) continue;
      std::optional<Settled> settled = descent.settle(std::move(draft), true);
      if (!settled) continue;
      const Seconds load = Place{ground_, settled->draft, settled->cost}.most_load();
      if (best.size() == kLayouts && load >= best.back().first) continue;
      const auto at =
          std::ranges::upper_bound(best, load, {}, [](const auto& own) { return own.first; });
      best.insert(at, {load, *std::move(settled)});
      if (best.size() > kLayouts) best.pop_back();
    }
    std::vector<Settled> out;
    for (auto& [load, settled] : best) out.push_back(std::move(settled));
    return out;
  }

  // Without twins; of each schedule one, if that is wanted.
  void keep_fastest(std::vector<Settled>& starts, int most, bool each_schedule = false) const {
    std::ranges::stable_sort(starts, {}, &Settled::step);
    std::vector<Settled> kept;
    for (Settled& start : starts) {
      const bool known = std::ranges::any_of(kept, [&](const Settled& other) {
        return ground_.plan_of(other.draft) == ground_.plan_of(start.draft);
      });
      const bool has_schedule = std::ranges::any_of(kept, [&](const Settled& other) {
        return other.draft.settings.schedule == start.draft.settings.schedule;
      });
      const bool wanted = static_cast<int>(kept.size()) < most || (each_schedule && !has_schedule);
      if (!known && wanted) kept.push_back(std::move(start));
    }
    starts = std::move(kept);
  }

  const SearchContext& context_;
  Ground ground_;
  const CostEngine& engine_;
  Shortlist& found_;
  const std::function<bool()>& stop_;
  MemoShelf& memos_;
  double work_ = 0;
  int followed_ = 0;
  int series_ = 0;
};

}  // namespace

void improve(const SearchContext& context, const Space& space, const CostEngine& engine,
             MemoShelf& memos, Shortlist& found, const Walks& walks,
             const std::function<bool()>& stop) {
  Improvement(context, space, engine, memos, found, walks, stop).run();
}

}  // namespace plait
