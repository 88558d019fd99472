#include "app/saved/explain.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/request/saved_target.h"
#include "app/saved/neighbours.h"
#include "cost/engine.h"
#include "report/plan_tables.h"
#include "report/quantities.h"

namespace plait {
namespace {

SearchResult best_plans(const ExplainRequest& request, const CostEngine& engine, const Pins& pins,
                        int keep, const Session& session) {
  SearchOptions options;
  options.keep = keep;
  options.time_limit = request.time_limit;
  options.pins = pins;
  options.target = saved_target(request.file);
  options.threads = request.threads;
  SearchContext context = search_context(engine.problem(), options, session);
  context.engine = &engine;
  return run_search(planners().front(), context);
}

std::vector<Alternative> alternatives_of(const ExplainRequest& request, const CostEngine& engine,
                                         const Session& session) {
  const auto& [problem, plan, made_by] = request.file;
  std::vector<Alternative> all;
  for (Neighbour& neighbour : neighbours_of(problem, plan)) {
    if (why_not(saved_target(request.file), problem, neighbour.plan)) continue;
    Estimate cost = engine.simulate(neighbour.plan);
    all.push_back({std::move(neighbour.change), {std::move(neighbour.plan), std::move(cost)}});
  }
  for (const int stages : {plan.stage_count() / 2, plan.stage_count() * 2}) {
    if (stages < 1 || stages == plan.stage_count() || session.stop.stop_requested()) continue;
    Pins pins;
    pins.pipeline = stages;
    SearchResult found = best_plans(request, engine, pins, 1, session);
    if (!found.plans.empty())
      all.push_back({fmt::format("{}, the best that there is", counted(stages, "stage")),
                     std::move(found.plans.front())});
  }
  std::ranges::stable_sort(
      all, {}, [](const Alternative& a) { return std::pair(!a.plan.cost.fits, a.plan.cost.step); });
  return all;
}

}  // namespace

StepShares shares_of(const RankedPlan& ranked) {
  const StageCost& stage = ranked.cost.stages[slowest_stage(ranked.cost)];
  const double m = ranked.plan.micro_batches;
  return {.compute = m * (stage.forward + stage.backward),
          .recompute = m * stage.recompute,
          .communication = m * (stage.forward_comm + stage.backward_comm),
          .bubble = ranked.cost.bubble,
          .after_pipeline = ranked.cost.after_pipeline};
}

Explanation answer(const ExplainRequest& request, const Session& session) {
  const CostEngine engine(request.file.problem);
  Explanation out;
  out.problem = request.file.problem;
  out.made_by = request.file.made_by;
  out.subject = {request.file.plan, engine.simulate(request.file.plan)};
  out.search = best_plans(request, engine, {}, 2, session);
  out.target = saved_target(request.file).name;
  out.alternatives = alternatives_of(request, engine, session);
  return out;
}

}  // namespace plait
