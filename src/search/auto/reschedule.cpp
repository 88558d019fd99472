#include "search/auto/reschedule.h"

#include <algorithm>

#include "base/parallel.h"
#include "search/space/schedules.h"

namespace plait {
namespace {

constexpr int kRescheduled = 5;     // pipelines
constexpr int kRound = 4;           // tries that start from the same incumbents
constexpr double kRounding = 1e-9;  // by which floors may be too high

// plait's own runtime does not split the backward pass.
std::vector<Schedule> other_schedules(Framework framework) {
  switch (framework) {
    case Framework::plait:
      return {Schedule::interleaved};
    case Framework::megatron:
    case Framework::megatron_router:
    case Framework::megatron_graph:
    case Framework::megatron_lm:
      return {Schedule::interleaved, Schedule::zb_h1, Schedule::zb_2p, Schedule::zb_v};
    default:
      return {};
  }
}

bool is_worth_it(const Plan& plan) {
  // What cuts stages into chunks takes stages of one span.
  const auto is_plain = [](const Stage& stage) { return stage.spans.size() == 1; };
  return plan.stage_count() > 1 && std::ranges::all_of(plan.stages, is_plain) &&
         1.0 * plan.stage_count() * plan.micro_batches <= kMostTasks;
}

// A pipeline under another schedule.
struct Try {
  Plan plan;
  Seconds floor;
};

class Rescheduling {
 public:
  Rescheduling(const SearchContext& context, const CostEngine& engine, Shortlist& found,
               const std::function<bool()>& stop)
      : context_(context), engine_(engine), found_(found), stop_(stop) {}

  // Only what may beat `limit` is simulated: the worst plan that is kept, or the best. Those with
  // the lowest floors come first, so that most others cannot beat what they leave.
  void run(const std::vector<RankedPlan>& plans, Seconds (Shortlist::*limit)() const) {
    std::vector<Try> tries = tries_of(plans);
    const int count = static_cast<int>(tries.size());
    for (int first = 0; first < count; first += kRound) {
      const Seconds beaten = (found_.*limit)();
      const int size = std::min(kRound, count - first);
      std::vector<Shortlist> results(static_cast<std::size_t>(size), Shortlist(engine_, 1));
      parallel_for(size, context_.options.threads, [&](int i) {
        const Try& own = tries[first + i];
        if (!stop_() && (1 - kRounding) * own.floor < beaten) results[i].offer(own.plan);
      });
      for (const Shortlist& result : results) found_.merge(result);
    }
  }

 private:
  std::vector<Try> tries_of(const std::vector<RankedPlan>& plans) const {
    std::vector<Try> tries;
    int pipelines = 0;
    for (const RankedPlan& ranked : plans) {
      if (!is_worth_it(ranked.plan) || pipelines == kRescheduled) continue;
      ++pipelines;
      for (const Schedule schedule : other_schedules(context_.problem.job.framework)) {
        Pins pins = context_.options.pins;
        pins.schedule = schedule;
        for (Plan& plan : plans_for(ranked.plan, pins)) tries.push_back({std::move(plan), {}});
      }
    }
    parallel_for(static_cast<int>(tries.size()), context_.options.threads,
                 [&](int i) { tries[i].floor = engine_.floor_of(tries[i].plan); });
    std::ranges::stable_sort(tries, {}, &Try::floor);
    return tries;
  }

  const SearchContext& context_;
  const CostEngine& engine_;
  Shortlist& found_;
  const std::function<bool()>& stop_;
};

}  // namespace

void reschedule(const SearchContext& context, const CostEngine& engine, Shortlist& found,
                const std::function<bool()>& stop) {
  if (context.options.pins.schedule || !context.options.pins.stages.empty()) return;
  const std::vector<RankedPlan> best = found.plans();
  std::vector<RankedPlan> without_bubble = found.without_bubble();
  Rescheduling rescheduling(context, engine, found, stop);
  rescheduling.run(best, &Shortlist::worst_kept);
  std::erase_if(without_bubble, [&](const RankedPlan& ranked) {
    return ranked.cost.step - ranked.cost.bubble >= found.best();
  });
  rescheduling.run(without_bubble, &Shortlist::best);
}

}  // namespace plait
