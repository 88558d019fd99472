#include <gtest/gtest.h>

#include <algorithm>

#include "named_problem.h"
#include "plan/describe.h"
#include "search/space/search.h"

namespace plait {
namespace {

SearchResult megatron_plans(const Problem& problem, int keep, const Pins& pins = {}) {
  return run_search(
      planners().front(),
      {problem, {.keep = keep, .pins = pins, .target = *target_named("megatron")}, {}, {}, {}});
}

// Of shapes that do not cut sequences, which the others can only add to.
std::vector<double> steps_of_pinned_shapes(const Problem& problem, int devices) {
  std::vector<double> steps;
  for (int tensor = 1; tensor <= 8; tensor *= 2)
    for (int stages = 1; stages * tensor <= devices; stages *= 2) {
      const Pins pins{.tensor = tensor, .pipeline = stages, .context = 1};
      if (violation_of(problem, pins, *target_named("megatron"))) continue;
      const SearchResult found = megatron_plans(problem, 1, pins);
      if (!found.plans.empty()) steps.push_back(found.plans.front().cost.step.value);
    }
  std::ranges::sort(steps);
  return steps;
}

TEST(OtherShapes, AreTheFastestOnesAndNotThoseThatWereMet) {
  const struct {
    const char* model;
    const char* cluster;
    int batch;
    int devices;
  } cases[] = {{"mistral-7b", "2xA100-80GB:8", 128, 16},
               {"llama-2-13b", "4xA100-40GB:4", 64, 16},
               {"gpt2-xl", "2xT4:4", 32, 8},
               {"llama-3-8b", "8xH100", 64, 8}};
  for (const auto& own : cases) {
    Problem problem = named_problem(own.model, own.cluster, own.batch, 2048);
    problem.job.precision = Precision::fp16;
    problem.job.attention = AttentionKernel::plain;
    const SearchResult found = megatron_plans(problem, 5);
    const std::vector<double> steps = steps_of_pinned_shapes(problem, own.devices);
    const std::size_t count = std::min<std::size_t>(5, steps.size());
    ASSERT_GE(count, 4) << own.model;
    ASSERT_GE(found.plans.size(), count) << own.model;
    // Each is a search of its own with less work, so that the last few per cent may be missing.
    for (std::size_t i = 0; i < count; ++i)
      EXPECT_LE(found.plans[i].cost.step.value, 1.03 * steps[i])
          << own.model << " " << i << " " << describe(found.plans[i].plan);
  }
}

}  // namespace
}  // namespace plait
