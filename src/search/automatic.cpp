#include "search/auto/auto_search.h"
#include "search/space/host_order.h"
#include "search/space/planners.h"
#include "search/uniform/uniform_search.h"

namespace plait {
namespace {

SearchResult search_in_order(const SearchContext& context) {
  return context.options.target.one_layout ? search_uniform(context) : AutoSearch(context).run();
}

}  // namespace

// Hosts are searched in an order of their own, so that the order in which they are listed changes
// nothing.
SearchResult search_automatically(const SearchContext& context) {
  const HostOrder order(context.problem.cluster);
  if (order.is_canonical()) return search_in_order(context);
  Problem sorted = context.problem;
  sorted.cluster = order.canonical();
  const CostEngine engine(sorted);
  const Space space(sorted, context.options.pins, context.options.target);
  SearchContext inner{sorted, context.options, context.stop, {}, context.on_progress};
  inner.engine = &engine;
  inner.space = &space;
  inner.deadline = context.deadline;
  SearchResult result = search_in_order(inner);
  for (RankedPlan& ranked : result.plans) order.restore(ranked.plan);
  if (result.nearest) order.restore(result.nearest->plan);
  return result;
}

}  // namespace plait
