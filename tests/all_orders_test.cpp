#include "search/uniform/all_orders.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <tuple>

#include "cost/engine.h"
#include "plan/describe.h"
#include "search/uniform/other_shapes.h"
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

constexpr OrderWork kPriced{20'000, 800, true, false};

Seconds bound_of(Evaluations& all, const UniformLayout& layout, Seconds most,
                 const OrderWork& work) {
  AllOrders orders(all.ground, layout, *all.ground.spaces.at(layout.recompute), work);
  return orders.closes(most) ? most : orders.bound();
}

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
    for (const OrderWork& work : {kUsualOrderWork, kThoroughOrderWork, kPriced}) {
      const Seconds bound = bound_of(all, layout, 1.3 * found.best(), work);
      raised += work.places_layers && bound > layout.bound ? 1 : 0;
      EXPECT_LE(bound, (1 + 1e-6) * found.best())
          << "seed " << seed << ": " << describe(found.plans().front().plan);
    }
  }
  return {plans, raised};
}

bool are_of(const UniformLayout& family, const UniformLayout& layout) {
  const auto key = [](const UniformLayout& own) {
    const PlanSettings& settings = own.settings;
    return std::tuple(own.tensor, own.data, own.stages, own.schedule, own.chunks, settings.context,
                      settings.expert, settings.micro_batches, settings.zero,
                      settings.sequence_parallel);
  };
  return key(family) == key(layout);
}

// Of every few families, the plans on all mixes of nodes: how many there were, and how many of the
// families' bounds said something.
std::pair<int, int> expect_families_below_plans(std::uint64_t seed, int step) {
  Evaluations all(second_opinion::mixed_problem(seed, 16).problem);
  const auto never = [] { return false; };
  if (all.kinds.size() < 2 || !are_all_mixes(all.kinds) || all.mixes.size() > 40) return {0, 0};
  std::vector<int> which(all.mixes.size());
  std::iota(which.begin(), which.end(), 0);
  const auto listed = all.layouts.list(all.mixes, which, Seconds(HUGE_VAL), never);
  const auto families = all.layouts.list_families(all.mixes, {}, Seconds(HUGE_VAL), never);
  int plans = 0;
  int raised = 0;
  for (std::size_t i = seed % step; i < families.layouts.size(); i += step) {
    const UniformLayout& family = families.layouts[i];
    if (family.stages > 8 || family.settings.micro_batches > 16) continue;
    Shortlist found(all.engine, 1, all.space.target());
    for (const UniformLayout& layout : listed.layouts)
      if (are_of(family, layout)) {
        evaluate(all.ground, layout, Seconds(HUGE_VAL), found);
        UniformLayout some = layout;
        some.recomputes_some = true;
        if (layout.recompute == Recompute::none && may_recompute_some(all.space, layout))
          evaluate(all.ground, some, Seconds(HUGE_VAL), found);
      }
    if (found.empty()) continue;
    ++plans;
    EXPECT_LE(family.bound, (1 + 1e-6) * found.best())
        << "seed " << seed << ": " << describe(found.plans().front().plan);
    for (const OrderWork& work : {kThoroughOrderWork, kPriced}) {
      const Seconds bound = bound_of(all, family, 1.3 * found.best(), work);
      raised += bound > family.bound ? 1 : 0;
      EXPECT_LE(bound, (1 + 1e-6) * found.best())
          << "seed " << seed << ": " << describe(found.plans().front().plan);
    }
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

TEST(AllOrders, BoundsOfFamiliesAreNotAboveAPlanOfAnyMix) {
  int plans = 0;
  int raised = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const auto [own_plans, own_raised] = expect_families_below_plans(seed, 41);
    plans += own_plans;
    raised += own_raised;
  }
  EXPECT_GT(plans, 10);
  EXPECT_GT(raised, plans / 4);
}

TEST(SlowAllOrders, BoundsOfFamiliesAreNotAboveAPlanOfAnyMix) {
  for (std::uint64_t seed = 200; seed < 260; ++seed) expect_families_below_plans(seed, 7);
}

TEST(SlowAllOrders, TheirBoundIsNotAboveAPlan) {
  for (std::uint64_t seed = 100; seed < 160; ++seed) expect_below_plans(seed, 5);
}

}  // namespace
}  // namespace plait
