#include "search/reschedule.h"

#include <algorithm>

#include "base/parallel.h"
#include "search/schedules.h"

namespace plait {
namespace {

constexpr int kRescheduled = 5;  // pipelines
constexpr int kRound = 8;        // tries that start from the same incumbents

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
  return plan.stage_count() > 1 && 1.0 * plan.stage_count() * plan.micro_batches <= kMostTasks;
}

// One pipeline under one schedule.
struct Try {
  const Plan* pipeline;
  Schedule schedule;
};

class Rescheduling {
 public:
  Rescheduling(const SearchContext& context, const CostEngine& engine, Shortlist& found,
               const std::function<bool()>& stop)
      : context_(context), engine_(engine), found_(found), stop_(stop) {}

  // Only what beats `limit` is simulated: the worst plan that is kept, or the best.
  void run(const std::vector<RankedPlan>& plans, Seconds (Shortlist::*limit)() const) {
    std::vector<Try> tries;
    int pipelines = 0;
    for (const RankedPlan& ranked : plans) {
      if (!is_worth_it(ranked.plan) || pipelines == kRescheduled) continue;
      ++pipelines;
      for (const Schedule schedule : other_schedules(context_.problem.job.framework))
        tries.push_back({&ranked.plan, schedule});
    }
    const int count = static_cast<int>(tries.size());
    for (int first = 0; first < count; first += kRound) {
      const int size = std::min(kRound, count - first);
      std::vector<Shortlist> results(static_cast<std::size_t>(size), found_.without_counts());
      parallel_for(size, context_.options.threads, [&](int i) {
        Pins pins = context_.options.pins;
        pins.schedule = tries[first + i].schedule;
        for (const Plan& plan : plans_for(*tries[first + i].pipeline, pins))
          if (!stop_() && engine_.floor_of(plan) < (results[i].*limit)()) results[i].offer(plan);
      });
      for (const Shortlist& result : results) found_.merge(result);
    }
  }

 private:
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
