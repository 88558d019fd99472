// Programs with one layout for all stages: no pin, no local search and no other order of hosts
// finds a better plan than the free search, and no plan is below a bound.

#include "second_opinion/one_layout.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <tuple>
#include <vector>

#include "monotone/every_pin.h"
#include "monotone/pairs.h"
#include "named_problem.h"
#include "plan/describe.h"
#include "second_opinion/mixed_problem.h"

namespace plait::monotone {
namespace {

class Judge {
 public:
  Judge(const Target& target, std::uint64_t seed, int most_devices)
      : target_(target),
        seed_(seed),
        mixed_(second_opinion::mixed_problem(seed, most_devices)),
        problem_(mixed_.problem) {
    adapt(problem_, target_);
    free_ = searched(problem_, {});
  }

  // How many of the pins, every `step`-th of them, give a better plan.
  int better_pins(std::size_t step) {
    const std::vector<Pinned> pins = every_pin(problem_, target_);
    int better = 0;
    for (std::size_t i = seed_ % step; i < pins.size(); i += step) {
      const SearchResult found = searched(problem_, pins[i].pins);
      if (!found.plans.empty()) better += is_better(found.plans.front(), pins[i].words) ? 1 : 0;
    }
    return better;
  }

  bool pin_is_better(const std::string& words) {
    for (const Pinned& own : every_pin(problem_, target_)) {
      if (own.words != words) continue;
      const SearchResult found = searched(problem_, own.pins);
      return !found.plans.empty() && is_better(found.plans.front(), own.words);
    }
    ADD_FAILURE() << "no pin " << words;
    return false;
  }

  bool opinion_is_better(std::int64_t evaluations) {
    const CostEngine engine(problem_);
    std::vector<Plan> given;
    for (const RankedPlan& ranked : free_.plans) given.push_back(ranked.plan);
    const auto opinion = second_opinion::one_layout_opinion(
        engine, target_, given, {.seed = seed_, .evaluations = evaluations});
    if (!opinion) return false;
    const Pinned own = pins_like(problem_, opinion->plan);
    const SearchResult pinned = searched(problem_, own.pins);
    EXPECT_LE(bound(pinned), opinion->step) << said(own.words);
    return is_better({opinion->plan, engine.simulate(opinion->plan)}, "the second opinion");
  }

  void expect_the_same_with_its_own_pins() {
    if (free_.plans.empty()) return;
    const Pinned own = pins_like(problem_, free_.plans.front().plan);
    const SearchResult found = searched(problem_, own.pins);
    ASSERT_FALSE(found.plans.empty()) << said(own.words);
    EXPECT_LE(found.plans.front().cost.step, (1 + kTolerance) * step()) << said(own.words);
    EXPECT_LE(bound(found), step()) << said(own.words);
  }

  void expect_the_same_in_another_order() {
    Problem other = problem_;
    other.cluster = with_hosts_in_another_order(other.cluster, seed_);
    const SearchResult found = searched(other, {});
    ASSERT_EQ(found.plans.size(), free_.plans.size()) << said("");
    EXPECT_EQ(bound(found), bound(free_)) << said("");
    for (std::size_t i = 0; i < found.plans.size(); ++i)
      EXPECT_EQ(found.plans[i].cost.step, free_.plans[i].cost.step) << said("");
  }

 private:
  SearchResult searched(const Problem& problem, const Pins& pins) const {
    SearchContext context{problem, {.keep = 3}, {}, {}, {}};
    context.options.pins = pins;
    context.options.target = target_;
    return run_search(planners().front(), context);
  }

  static Seconds bound(const SearchResult& result) {
    return result.lower_bound.value_or(Seconds(0));
  }
  Seconds step() const {
    return free_.plans.empty() ? Seconds(HUGE_VAL) : free_.plans.front().cost.step;
  }
  std::string said(const std::string& words) const {
    return fmt::format("{}, seed {}: {} --runs-on {} {}", words, seed_, mixed_.arguments,
                       target_.name, words);
  }

  bool is_better(const RankedPlan& other, const std::string& words) const {
    const Seconds own = other.cost.step;
    EXPECT_LE(bound(free_), own) << said(words) << "\n" << describe(other.plan);
    if (own * (1 + kTolerance) >= step()) return false;
    std::puts(
        fmt::format("{}: {:.5g} s, free {:.5g} s", said(words), own.value, step().value).c_str());
    return true;
  }

  const Target& target_;
  std::uint64_t seed_;
  second_opinion::MixedProblem mixed_;
  Problem problem_;
  SearchResult free_;
};

std::vector<const Target*> one_layout_targets() {
  std::vector<const Target*> out;
  for (const Target& target : targets())
    if (target.one_layout) out.push_back(&target);
  return out;
}

std::string name_of(int index) {
  std::string name(one_layout_targets()[index]->name);
  std::ranges::replace(name, '-', '_');
  return name;
}

const int kTargets = static_cast<int>(one_layout_targets().size());

class OneLayout : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Targets, OneLayout, testing::Range(0, kTargets),
                         [](const auto& parameter) { return name_of(parameter.param); });

// Problems in which a V, a context degree of short sequences, or another cut was once missed.
TEST_P(OneLayout, NothingBeatsTheFreeSearch) {
  for (const std::uint64_t seed : {71'001, 71'003}) {
    Judge judge(*one_layout_targets()[GetParam()], seed, 32);
    EXPECT_EQ(judge.better_pins(4), 0);
    judge.opinion_is_better(300);
    judge.expect_the_same_with_its_own_pins();
    judge.expect_the_same_in_another_order();
  }
}

TEST(OneLayout, HandsOverFewTimesWhereNetworksAreSlow) {
  Judge judge(*target_named("megatron"), 60'014, 64);
  EXPECT_EQ(judge.better_pins(24), 0);
}

// Of a layout that is looked at again its tied embeddings were once counted twice.
TEST(OneLayout, BoundsCountTiedEmbeddingsOnce) {
  Judge judge(*target_named("megatron"), 8'002, 256);
  EXPECT_FALSE(judge.opinion_is_better(300));
}

// Devices of two types that share a sequence were once as fast as the first of them.
TEST(OneLayout, SequencesSharedByTypesOfDevicesAreNoGain) {
  Judge judge(*target_named("megatron"), 8'001, 256);
  EXPECT_FALSE(judge.pin_is_better("--pp 2 --stages any"));
}

// Twenty stages of one layer or two: which have one is found by the paths of the step.
TEST(OneLayout, MovesLayersBetweenManyStages) {
  Judge judge(*target_named("megatron"), 8'011, 256);
  EXPECT_FALSE(judge.pin_is_better("--dp 1"));
}

// More effort goes on from what less of it found: the plan is no slower, and more is proven of it.
// On the last two of these problems normal effort leaves open what thorough effort can prove.
TEST(OneLayout, MoreEffortIsNeverWorse) {
  int more_proven[3] = {};
  for (const std::uint64_t seed : {660'018, 660'020, 660'002, 660'003}) {
    second_opinion::MixedProblem mixed = second_opinion::mixed_problem(seed, 256);
    adapt(mixed.problem, *target_named("megatron"));
    std::vector<SearchResult> results;
    for (const Effort effort : {Effort::quick, Effort::normal, Effort::thorough}) {
      SearchContext context{mixed.problem, {.keep = 1}, {}, {}, {}};
      context.options.effort = effort;
      context.options.target = *target_named("megatron");
      results.push_back(run_search(planners().front(), context));
      ASSERT_FALSE(results.back().plans.empty()) << mixed.arguments;
    }
    for (std::size_t i = 1; i < results.size(); ++i) {
      EXPECT_LE(results[i].plans.front().cost.step, results[i - 1].plans.front().cost.step);
      EXPECT_GE(*results[i].lower_bound, *results[i - 1].lower_bound) << mixed.arguments;
      more_proven[i] += *results[i].lower_bound > *results[i - 1].lower_bound ? 1 : 0;
    }
    EXPECT_LT(results[0].evaluations, results[1].evaluations);
  }
  EXPECT_GT(more_proven[1], 0);
  EXPECT_GT(more_proven[2], 0);
}

// Not all mixes of these nodes are listed. What their devices could compute without any network was
// all that was known of the others, a tenth of the step; the bound of all plans is a seventh.
TEST(OneLayout, MixesThatAreNotListedHaveTheBoundOfAllPlans) {
  Problem problem = named_problem("gpt-neo-2.7b",
                                  "21xA10:4/10Gbps+21xRTX4090:4/50Gbps+10xA100-40GB:8/25Gbps", 48);
  adapt(problem, *target_named("megatron"));
  SearchContext context{problem, {.keep = 1}, {}, {}, {}};
  context.options.target = *target_named("megatron");
  const SearchResult found = run_search(planners().front(), context);
  ASSERT_FALSE(found.plans.empty());
  EXPECT_LE(*found.lower_bound, found.plans.front().cost.step);
  EXPECT_GE(*found.lower_bound, 0.12 * found.plans.front().cost.step);
}

class SlowOneLayout : public testing::TestWithParam<std::tuple<int, int>> {};
INSTANTIATE_TEST_SUITE_P(Slow, SlowOneLayout,
                         testing::Combine(testing::Range(0, kTargets), testing::Range(0, 4)),
                         [](const auto& parameter) {
                           return fmt::format("{}_{}", name_of(std::get<0>(parameter.param)),
                                              std::get<1>(parameter.param));
                         });

// In ninety-five of a hundred.
TEST_P(SlowOneLayout, NothingBeatsTheFreeSearchOnLargeClusters) {
  const auto [target, part] = GetParam();
  int pins = 0;
  int opinions = 0;
  constexpr int kProblems = 10;
  for (int i = 0; i < kProblems; ++i) {
    Judge judge(*one_layout_targets()[target], 80'000 + 10 * part + i, 128);
    pins += judge.better_pins(3) > 0 ? 1 : 0;
    opinions += judge.opinion_is_better(2'000) ? 1 : 0;
    judge.expect_the_same_with_its_own_pins();
    judge.expect_the_same_in_another_order();
  }
  EXPECT_LE(pins, 1);
  EXPECT_LE(opinions, 1);
}

}  // namespace
}  // namespace plait::monotone
