// For every target: each plan that is offered is one that the program runs, no slower than what
// `exhaustive` finds among them, and the bound is below all of them.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "base/drawn_by.h"
#include "monotone/every_pin.h"
#include "named_problem.h"
#include "plan/check.h"
#include "plan/describe.h"
#include "plan/sample_frameworks.h"
#include "plan/target.h"
#include "random_problem.h"
#include "search/space/search.h"
#include "second_opinion/mixed_problem.h"

namespace plait {
namespace {

using monotone::adapt;

constexpr double kRounding = 1e-9;
// A layer that waits for the host gains next to nothing by being computed twice; where memory
// suffices, `auto` does not look at that (docs/planners.md).
constexpr double kNeedlessRecompute = 1e-6;
constexpr int kSmallProblems = 12;  // of each target
constexpr int kLargeProblems = 2;

SearchResult planned(const Problem& problem, const Target& target, const char* planner,
                     const Pins& pins, int threads = 1) {
  SearchOptions options;
  options.target = target;
  options.pins = pins;
  options.threads = threads;
  const SearchContext context{problem, options, {}, {}, {}};
  for (const Planner& own : planners())
    if (own.name == planner) return run_search(own, context);
  return {};
}

void expect_to_run(const Problem& problem, const Target& target, const SearchResult& result) {
  for (const RankedPlan& ranked : result.plans) {
    EXPECT_TRUE(check_plan(problem, ranked.plan).empty());
    EXPECT_EQ(why_not(target, problem, ranked.plan).value_or(""), "") << target.name;
    EXPECT_TRUE(ranked.cost.fits);
  }
  if (!result.lower_bound || result.plans.empty()) return;
  EXPECT_LE(*result.lower_bound, (1 + kRounding) * result.plans.front().cost.step) << target.name;
}

// `auto` is not slower than the best of all plans listed one by one, and its bound is below it.
void expect_best(Problem problem, const Target& target) {
  adapt(problem, target);
  const SearchResult best = planned(problem, target, "auto", {});
  const SearchResult every = planned(problem, target, "exhaustive", {});
  expect_to_run(problem, target, best);
  expect_to_run(problem, target, every);
  if (every.plans.empty()) return;
  const Seconds least = every.plans.front().cost.step;
  ASSERT_FALSE(best.plans.empty()) << target.name;
  const std::string found =
      fmt::format("{}: auto {} {:.6g} s, exhaustive {} {:.6g} s", target.name,
                  describe(best.plans.front().plan), best.plans.front().cost.step.value,
                  describe(every.plans.front().plan), least.value);
  const bool by_layers = target.recompute_layers == RecomputeLayers::first;
  EXPECT_LE(best.plans.front().cost.step,
            (1 + (by_layers ? kNeedlessRecompute : kRounding)) * least)
      << found;
  const Seconds bound = best.lower_bound.value_or(Seconds(0));
  EXPECT_LE(bound, (1 + kRounding) * least) << found;
}

class EveryTarget : public testing::TestWithParam<int> {
 protected:
  const Target& target() const { return targets()[GetParam()]; }
};

TEST_P(EveryTarget, IsNeverSlowerThanAllItsPlansOneByOne) {
  std::mt19937_64 random(1 + GetParam());
  for (int i = 0; i < kSmallProblems; ++i) {
    SCOPED_TRACE(i);
    expect_best(random_problem(random, 5, 6), target());
  }
}

// On equal devices a plan with one layout is a plan of the space that `exhaustive` lists.
TEST_P(EveryTarget, FindsTheVeryBestOnEqualDevicesUnderOneSchedule) {
  const auto& schedules = target().schedules;
  const bool has_1f1b = std::ranges::find(schedules, Schedule::one_f_one_b) != schedules.end();
  const Pins pins{.schedule = has_1f1b ? Schedule::one_f_one_b : Schedule::gpipe};
  std::mt19937_64 random(100 + GetParam());
  for (int i = 0; i < kSmallProblems; ++i) {
    Problem problem = random_problem(random, 5, 6);
    for (Device& device : problem.cluster.devices) device.type = 0;
    for (Node& node : problem.cluster.nodes) node.uplink = problem.cluster.nodes[0].uplink;
    adapt(problem, target());
    const SearchResult best = planned(problem, target(), "auto", pins);
    const SearchResult every = planned(problem, target(), "exhaustive", pins);
    ASSERT_EQ(best.plans.empty(), every.plans.empty()) << target().name << " " << i;
    if (every.plans.empty()) continue;
    EXPECT_LE(best.plans.front().cost.step, (1 + kRounding) * every.plans.front().cost.step)
        << target().name << " " << i;
  }
}

TEST_P(EveryTarget, OffersOnlyWhatItRunsOnLargeAndMixedClusters) {
  for (int i = 0; i < kLargeProblems; ++i) {
    Problem problem = second_opinion::mixed_problem(1000 * GetParam() + i, 96).problem;
    adapt(problem, target());
    const SearchResult one = planned(problem, target(), "auto", {});
    expect_to_run(problem, target(), one);
    const SearchResult two = planned(problem, target(), "auto", {}, 2);
    ASSERT_EQ(one.plans.size(), two.plans.size());
    for (std::size_t p = 0; p < one.plans.size(); ++p)
      EXPECT_EQ(one.plans[p].plan, two.plans[p].plan) << target().name << " " << i;
    EXPECT_EQ(one.lower_bound, two.lower_bound);
  }
}

// JAX has GPipe in a pipeline; of a stage alone a micro-batch's backward pass follows its forward
// pass, so that activations of one are kept.
TEST(Targets, AStageAloneKeepsOneMicroBatch) {
  std::mt19937_64 random(616);
  const Target& jax = *target_named("jax");
  for (int i = 0; i < 20; ++i) {
    Problem problem = random_problem(random, 1, 4);  // one unit: nothing to cut
    adapt(problem, jax);
    SCOPED_TRACE(i);
    for (const RankedPlan& ranked : planned(problem, jax, "auto", {}).plans)
      EXPECT_EQ(ranked.plan.schedule, Schedule::one_f_one_b);
    expect_best(problem, jax);
  }
}

// A pinned plan is a plan of the free search.
void expect_no_pin_wins(Problem problem, const Target& target, const Pins& pins) {
  adapt(problem, target);
  const SearchResult free = planned(problem, target, "auto", {});
  const SearchResult pinned = planned(problem, target, "auto", pins);
  expect_to_run(problem, target, free);
  expect_to_run(problem, target, pinned);
  ASSERT_FALSE(free.plans.empty() || pinned.plans.empty());
  EXPECT_LE(*free.lower_bound, (1 + kRounding) * pinned.plans.front().cost.step);
  EXPECT_LE(free.plans.front().cost.step, (1 + kRounding) * pinned.plans.front().cost.step);
}

// What the stages of a node hand over keeps its network busy beside all else that a step does: tied
// embeddings are not summed after it.
TEST(Targets, ABusyNetworkIsNotFollowedByTiedEmbeddings) {
  Problem problem = named_problem("gemma-2-9b", "6xH100:4/10Gbps", 384);
  problem.job.precision = Precision::fp16;
  expect_no_pin_wins(problem, *target_named("megatron"),
                     {.tensor = 2, .pipeline = 12, .micro_batches = 384});
}

// The whole sum of gradients hides behind a backward pass of 10 s; weights that are gathered
// instead of its second half do not hide behind the forward pass, which has half of that time.
TEST(Targets, NetworksAreSlowEnoughForPlansWithoutZeRO) {
  Problem problem = named_problem("llama-3-8b", "8xA100-80GB:8/50Gbps", 64);
  problem.job.precision = Precision::fp32;
  expect_no_pin_wins(problem, *target_named("jax"), {.zero = ZeroStage::off});
}

// What is pinned to what the free search found, part by part, is not slower.
TEST_P(EveryTarget, IsNotFasterWhenSomethingIsPinned) {
  for (int i = 0; i < kLargeProblems; ++i) {
    Problem problem = second_opinion::mixed_problem(1000 * GetParam() + 500 + i, 32).problem;
    adapt(problem, target());
    if (!target().one_layout) continue;  // beyond the exact search, moves find what they find
    const SearchResult free = planned(problem, target(), "auto", {});
    if (free.plans.empty()) continue;
    for (const int tensor : {1, 4})
      for (const int stages : {1, 4}) {
        const Pins pins{.tensor = tensor, .pipeline = stages};
        if (violation_of(problem, pins, target())) continue;
        const SearchResult pinned = planned(problem, target(), "auto", pins);
        expect_to_run(problem, target(), pinned);
        if (pinned.plans.empty()) continue;
        EXPECT_GE(pinned.plans.front().cost.step, (1 - kRounding) * free.plans.front().cost.step)
            << target().name << " " << i << " tp " << tensor << " pp " << stages;
        EXPECT_GE(pinned.plans.front().cost.step,
                  (1 - kRounding) * free.lower_bound.value_or(Seconds(0)));
      }
  }
}

std::string name_of(int index) {
  std::string name(targets()[index].name);
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Targets, EveryTarget,
                         testing::Range(0, static_cast<int>(targets().size())),
                         [](const auto& parameter) { return name_of(parameter.param); });

// Five hundred problems a target, in ten parts: half of them small enough for `exhaustive`, half of
// up to 256 devices, mixtures of experts and long sequences among them. PLAIT_TEST_SEED draws
// others.
class SlowEveryTarget : public testing::TestWithParam<std::tuple<int, int>> {
 protected:
  const Target& target() const { return targets()[std::get<0>(GetParam())]; }
  int seed() const {
    return 1'000'000 * drawn_by() + 100'000 * (1 + std::get<0>(GetParam())) +
           100 * std::get<1>(GetParam());
  }
};

TEST_P(SlowEveryTarget, IsNeverSlowerThanAllItsPlansOneByOne) {
  std::mt19937_64 random(seed());
  for (int i = 0; i < 25; ++i) {
    SCOPED_TRACE(i);
    expect_best(random_problem(random, 5, 6), target());
  }
}

TEST_P(SlowEveryTarget, OffersOnlyWhatItRunsOnLargeAndMixedClusters) {
  for (int i = 0; i < 25; ++i) {
    using second_opinion::Sequences;
    auto drawn = second_opinion::mixed_problem(seed() + i, 256,
                                               i % 2 ? Sequences::up_to_64k : Sequences::usual);
    Problem& problem = drawn.problem;
    SCOPED_TRACE(drawn.arguments);
    adapt(problem, target());
    expect_to_run(problem, target(), planned(problem, target(), "auto", {}));
  }
}

INSTANTIATE_TEST_SUITE_P(Slow, SlowEveryTarget,
                         testing::Combine(testing::Range(0, static_cast<int>(targets().size())),
                                          testing::Range(0, 10)),
                         [](const auto& parameter) {
                           return fmt::format("{}_{}", name_of(std::get<0>(parameter.param)),
                                              std::get<1>(parameter.param));
                         });

}  // namespace
}  // namespace plait
