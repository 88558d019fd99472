// How many layers are recomputed: no number that is pinned beats the search that chooses it, and
// what is chosen layer by layer is never slower than what is chosen for whole stages.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "monotone/pairs.h"
#include "named_problem.h"
#include "plan/sample_frameworks.h"
#include "search/space/search.h"

namespace plait {
namespace {

constexpr double kRoundingOfSteps = 1e-9;

Seconds step_of(const Problem& problem, const char* target, const Pins& pins) {
  SearchOptions options;
  options.target = *target_named(target);
  options.pins = pins;
  const SearchContext context{problem, options, {}, {}, {}};
  const SearchResult result = run_search(planners().front(), context);
  for (const RankedPlan& ranked : result.plans)
    EXPECT_EQ(why_not(options.target, problem, ranked.plan).value_or(""), "");
  if (result.plans.empty()) return Seconds(HUGE_VAL);
  EXPECT_LE(result.lower_bound.value_or(Seconds(0)),
            (1 + kRoundingOfSteps) * result.plans.front().cost.step);
  return result.plans.front().cost.step;
}

TEST(Recompute, NoPinnedNumberOfLayersBeatsTheFreeSearch) {
  Problem problem = named_problem("gpt2-medium", "1xA100-40GB:4", 64);
  problem.job.framework = samples::framework("megatron-lm");
  int chosen = 0;
  for (const double gibibytes : {5.0, 6.0, 7.0, 8.5})
    for (const int stages : {1, 2, 4}) {
      problem.job.memory_limit = Bytes(gibibytes * 0x1p30);
      Pins pins;
      pins.pipeline = stages;
      pins.micro_batch = 4;
      const Seconds free = step_of(problem, "megatron", pins);
      Seconds least(HUGE_VAL);
      for (int layers = 1; layers <= 24; ++layers) {
        pins.recompute_layers = layers;
        least = std::min(least, step_of(problem, "megatron", pins));
      }
      pins.recompute_layers.reset();
      pins.recompute = Recompute::none;
      const Seconds none = step_of(problem, "megatron", pins);
      EXPECT_LE(free, (1 + kRoundingOfSteps) * std::min(none, least)) << gibibytes << " " << stages;
      EXPECT_EQ(std::isfinite(free.value), std::isfinite(std::min(none, least).value));
      if (least < none && std::isfinite(least.value)) ++chosen;
    }
  EXPECT_GE(chosen, 3) << "problems where memory is short enough";
}

TEST(Recompute, ByLayerIsNeverSlowerThanByStage) {
  int problems = 0;
  int better = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed)
    for (const char* target : {"any", "megatron"}) {
      const monotone::Pair pair = monotone::recompute_pair(seed, 16, *target_named(target));
      const Seconds by_stage = monotone::best_step(pair.worse);
      const Seconds by_layer = monotone::best_step(pair.better);
      if (!std::isfinite(by_stage.value)) continue;
      ++problems;
      EXPECT_LE(monotone::excess(by_stage, by_layer, 1), monotone::kTolerance)
          << target << ": " << pair.words;
      if (by_layer < 0.98 * by_stage) ++better;
    }
  std::printf("%d of %d problems faster by 2 %% or more\n", better, problems);
  EXPECT_GE(problems, 8);
  EXPECT_GE(better, problems / 8);
}

}  // namespace
}  // namespace plait
