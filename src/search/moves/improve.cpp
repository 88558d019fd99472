#include "search/moves/improve.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/parallel.h"
#include "plan/check.h"
#include "search/moves/descent.h"
#include "search/moves/layouts.h"

namespace plait {
namespace {

constexpr int kFollowed = 4;   // starts that are improved, each with a budget of its own
constexpr double kNear = 1.6;  // starts may be so many times slower than the best
// Work (descent.h) for everything: a few milliseconds on few devices.
constexpr double kWork = 6'000;
constexpr double kWorkPerDevice = 600;
constexpr double kMostWork = 120'000;
constexpr double kForStarts = 0.2;  // of it, to look for starts
constexpr double kForDescents = 0.4;

class Improvement {
 public:
  Improvement(const SearchContext& context, const Space& space, const CostEngine& engine,
              Shortlist& found, const std::function<bool()>& stop)
      : context_(context), ground_(space), engine_(engine), found_(found), stop_(stop) {
    work_ = std::min(kMostWork, kWork + kWorkPerDevice * context.problem.cluster.device_count());
  }

  void run() {
    std::vector<Settled> starts = all_starts();
    const int count = static_cast<int>(starts.size());
    if (count == 0) return;
    each(starts, kForDescents * work_ / count, [](Descent& descent, Settled& own, int) {
      descent.simulate(own);
      descent.descend(own);
    });
    std::ranges::stable_sort(starts, {}, &Settled::step);
    for (const Settled& start : starts) offer(start);
    // Two walks from the best, and one from the next.
    std::vector<Settled> walks{starts.front(), starts[std::min(1, count - 1)]};
    each(walks, (1 - kForStarts - kForDescents) * work_ / 2,
         [this](Descent& descent, Settled& own, int i) {
           descent.wander(own, context_.options.seed + static_cast<std::uint64_t>(i));
         });
    for (const Settled& walk : walks) offer(walk);
  }

 private:
  template <typename Follow>
  void each(std::vector<Settled>& all, double work, const Follow& follow) {
    parallel_for(static_cast<int>(all.size()), context_.options.threads, [&](int i) {
      Descent descent(ground_, engine_, work, stop_);
      follow(descent, all[i], i);
    });
  }

  void offer(const Settled& settled) {
    if (!std::isfinite(settled.step.value)) return;
    const Plan plan = ground_.plan_of(settled.draft);
    if (check_plan(context_.problem, plan).empty()) found_.offer(plan);
  }

  // The plans found so far and regular layouts, under every schedule; of each (stages, tensor) the
  // one with the lowest floor, and of those the lowest.
  std::vector<Settled> all_starts() {
    Descent descent(ground_, engine_, kForStarts * work_, stop_);
    std::map<std::pair<int, int>, Settled> best;
    const auto keep = [&](Settled settled) {
      int tensor = 1;
      for (const DraftStage& stage : settled.draft.stages) tensor = std::max(tensor, stage.tensor);
      const auto key = std::pair(settled.draft.stage_count(), tensor);
      const auto at = best.find(key);
      if (at == best.end() || settled.floor() < at->second.floor())
        best.insert_or_assign(key, std::move(settled));
    };
    const auto look = [&](const Draft& draft, bool unbalanced) {
      std::optional<Settled> plain = descent.settle(draft, unbalanced);
      if (!plain) return;
      if (plain->fits()) keep(*plain);
      moves_of::schedules({ground_, plain->draft, plain->cost}, [&](Draft&& other) {
        std::optional<Settled> settled = descent.settle(std::move(other), false);
        if (settled && settled->fits()) keep(*std::move(settled));
        return descent.is_over();
      });
    };
    for (const RankedPlan& ranked : found_.plans()) look(draft_of(ranked.plan), false);
    for (const RankedPlan& ranked : found_.without_bubble()) look(draft_of(ranked.plan), false);
    for (const Draft& draft : regular_layouts(ground_)) {
      if (descent.is_over()) break;
      look(draft, true);
    }
    std::vector<Settled> starts;
    for (auto& [key, settled] : best) starts.push_back(std::move(settled));
    std::ranges::stable_sort(starts, {}, &Settled::floor);
    // The best plan so far is always one of them.
    std::vector<Settled> chosen;
    if (!found_.empty()) {
      std::optional<Settled> own = descent.settle(draft_of(found_.plans().front().plan), false);
      if (own) chosen.push_back(*std::move(own));
    }
    for (Settled& start : starts)
      if (static_cast<int>(chosen.size()) < kFollowed && start.floor() < kNear * found_.best())
        chosen.push_back(std::move(start));
    return chosen;
  }

  const SearchContext& context_;
  Ground ground_;
  const CostEngine& engine_;
  Shortlist& found_;
  const std::function<bool()>& stop_;
  double work_ = 0;
};

}  // namespace

void improve(const SearchContext& context, const Space& space, const CostEngine& engine,
             Shortlist& found, const std::function<bool()>& stop) {
  Improvement(context, space, engine, found, stop).run();
}

}  // namespace plait
