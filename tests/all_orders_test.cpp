#include "search/uniform/all_orders.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "cost/engine.h"
#include "plan/describe.h"
#include "second_opinion/mixed_problem.h"

// What is said of all orders of hosts is not above a plan in one of them.
namespace plait {
namespace {

struct Evaluations {
  Problem problem;
  SearchContext context{problem, {.keep = 1}, {}, {}, {}};
  CostEngine engine{problem};
  Space space{problem, {}, *target_named("megatron")};
  std::vector<NodeKind> kinds = node_kinds(problem, space.target());
  std::vector<NodeMix> mixes = node_mixes(kinds);
  UniformLayouts layouts{space, engine, kinds, 1};
  UniformGround ground{context, engine, kinds, mixes, layouts, {}, [] { return false; }};

  explicit Evaluations(Problem given) : problem(std::move(given)) {
    context.options.target = space.target();
    context.options.threads = 1;
    context.engine = &engine;
    context.space = &space;
    context.deadline = std::chrono::steady_clock::time_point::max();
    ground.most_orders = std::numeric_limits<std::size_t>::max();
    for (const Recompute recompute : space.recomputes()) {
      Pins pins;
      pins.recompute = recompute;
      ground.spaces.emplace(recompute, std::make_unique<Space>(problem, pins, space.target()));
    }
  }
};

// How many layouts had a plan, and of how many the bound said something.
std::pair<int, int> expect_below_plans(std::uint64_t seed, int step) {
  Evaluations all(second_opinion::mixed_problem(seed, 24).problem);
  const auto listed = all.layouts.list(all.mixes, {0}, Seconds(HUGE_VAL), [] { return false; });
  int plans = 0;
  int raised = 0;
  for (std::size_t i = seed % step; i < listed.layouts.size(); i += step) {
    const UniformLayout& layout = listed.layouts[i];
    if (layout.stages > 12 || layout.settings.micro_batches > 32) continue;
    Shortlist found(all.engine, 1, all.space.target());
    evaluate(all.ground, layout, Seconds(HUGE_VAL), found);
    if (found.empty()) continue;
    ++plans;
    AllOrders orders(all.ground, layout, *all.ground.spaces.at(layout.recompute));
    const Seconds most = 1.3 * found.best();
    const Seconds bound = orders.closes(most) ? most : orders.bound();
    raised += bound > layout.bound ? 1 : 0;
    EXPECT_LE(bound, (1 + 1e-6) * found.best())
        << "seed " << seed << ": " << describe(found.plans().front().plan);
  }
  return {plans, raised};
}

TEST(AllOrders, TheirBoundIsNotAboveAPlan) {
  int plans = 0;
  int raised = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const auto [own_plans, own_raised] = expect_below_plans(seed, 23);
    plans += own_plans;
    raised += own_raised;
  }
  EXPECT_GT(plans, 30);
  EXPECT_GT(raised, plans / 4);
}

TEST(SlowAllOrders, TheirBoundIsNotAboveAPlan) {
  for (std::uint64_t seed = 100; seed < 160; ++seed) expect_below_plans(seed, 5);
}

}  // namespace
}  // namespace plait
