#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "cost/engine.h"
#include "search/space/shortlist.h"
#include "search/uniform/division/cut_search.h"
#include "search/uniform/layouts/uniform_layouts.h"

namespace plait {

// Of a layout with more orders of hosts only those with the lowest bounds are looked at in the
// first place: one layout would take as much work as all others.
inline constexpr std::size_t kUsualOrders = 12;

// All that evaluations of layouts share.
struct UniformGround {
  const SearchContext& context;
  const CostEngine& engine;
  const std::vector<NodeKind>& kinds;
  const std::vector<NodeMix>& mixes;
  const UniformLayouts& layouts;
  std::map<Recompute, std::unique_ptr<Space>> spaces;  // with the recompute pinned
  std::function<bool()> stop;
  double work = 1;                         // that a layout may take, relative to the usual
  std::size_t most_orders = kUsualOrders;  // of hosts, of which cuts are looked at
};

// A plan that may become the best one when its layers are moved.
struct NearPlan {
  Seconds promise;  // about what a step takes
  Plan plan;
};

struct Evaluated {
  Seconds bound;              // nothing of the layout is faster than this, or than the limit
  bool lacks_memory = false;  // with more of it there might be faster plans
  bool is_settled = false;    // looking again would tell no more
  // The same of the orders of hosts that are listed; of the others AllOrders may know more.
  Seconds listed = Seconds(0);
  std::size_t orders = 0;  // of hosts, of which cuts were looked at
  // The best of some orders of hosts, of those that are not much slower than the limit.
  std::vector<NearPlan> near{};
};

// What a layout counts whose plans do not fit, where work is limited: it takes about an eighth of
// the time of others, and on long sequences those with the lowest bounds do not fit.
inline constexpr double kOfAMisfit = 0.125;

// Finds the best plans of a layout over all orders of its hosts and all cuts, and offers them.
Evaluated evaluate(const UniformGround& ground, const UniformLayout& layout, Seconds limit,
                   Shortlist& found);

}  // namespace plait
