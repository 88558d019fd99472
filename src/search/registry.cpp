#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/parallel.h"
#include "cost/engine.h"
#include "plan/check.h"
#include "search/bound/proof.h"
#include "search/space/planners.h"
#include "search/space/search.h"
#include "search/space/space.h"

namespace plait {

// Of planners that no other one asks; space/planners.h has the rest.
SearchResult search_automatically(const SearchContext& context);

namespace {

constexpr std::chrono::duration<double> kLongest = std::chrono::hours(24 * 365);

}  // namespace

std::span<const Planner> planners() {
  static const Planner table[] = {
      {"auto", "plait's own: bounds, label search, branch and bound; the default",
       search_automatically},
      {"amp", "as in AMP: one set of degrees for all stages, devices in rank order",
       search_like_amp},
      {"fasop", "as in FASOP: the same over cyclic node orders, stages balanced by moving layers",
       search_like_fasop},
      {"metis", "as in Metis: device groups of powers of two, degrees by a greedy path",
       search_like_metis},
      {"aceso", "as in Aceso: bottlenecks alleviated one by one, several changes deep",
       search_like_aceso},
      {"exhaustive", "every plan of the space, each simulated; the oracle, for small problems",
       search_exhaustively},
  };
  return table;
}

SearchResult run_search(const Planner& planner, const SearchContext& context) {
  const auto begin = std::chrono::steady_clock::now();
  // One engine for the planner and for the final costs: its tables are made once.
  std::optional<CostEngine> own;
  const CostEngine& engine = context.engine ? *context.engine : own.emplace(context.problem);
  const Space space(context.problem, context.options.pins, context.options.target);
  SearchContext shared = context;
  shared.engine = &engine;
  shared.space = &space;
  shared.deadline =
      begin + std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::min(
                  kLongest, std::chrono::duration<double>(context.options.time_limit.value)));
  // Callers that pin what a user did not ask for (other numbers of stages, say) may pin what no
  // plan can have; planners need at least one setting to begin with.
  SearchResult result;
  if (!space.settings().empty())
    result = planner.search(shared);
  else if (space.violation())
    result.reason = in_words(*space.violation());
  if (result.lower_bound && !(*result.lower_bound > Seconds(0))) result.lower_bound.reset();
  for (const RankedPlan& ranked : result.plans)
    PLAIT_CHECK(check_plan(context.problem, ranked.plan).empty());
  parallel_for(static_cast<int>(result.plans.size()), context.options.threads,
               [&](int i) { result.plans[i].cost = engine.simulate(result.plans[i].plan); });
  for (const RankedPlan& ranked : result.plans) PLAIT_CHECK(ranked.cost.fits);
  std::ranges::stable_sort(result.plans, [](const RankedPlan& a, const RankedPlan& b) {
    if (a.cost.step != b.cost.step) return a.cost.step < b.cost.step;
    return a.plan < b.plan;
  });
  if (static_cast<int>(result.plans.size()) > context.options.keep)
    result.plans.resize(context.options.keep);
  keep_what_is_proven(shared, engine, result);
  return result;
}

}  // namespace plait
