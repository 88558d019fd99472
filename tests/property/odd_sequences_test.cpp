#include <gtest/gtest.h>

#include <random>

#include "named_problem.h"
#include "plan/check.h"
#include "plan/describe.h"
#include "search/space/search.h"

// With sequence parallelism the tensor degree must divide the tokens that a device has of a
// sequence, which are fewer when the sequence is cut over a context group. run_search() aborts on a
// plan that is not sound, so these searches must only end.
namespace plait {
namespace {

SearchResult search(const Problem& problem, const Pins& pins) {
  return run_search(planners().front(), {problem, {.keep = 3, .pins = pins}, {}, {}, {}});
}

TEST(OddSequences, ArePlannedWhereTensorDegreesDoNotDivideThePartOfADevice) {
  // 20,000 = 2^5 x 625: cut over 8 devices it has 2,500 tokens each, which 8 does not divide.
  const Problem problem = named_problem("llama-2-7b", "16xH100:8", 1, 20000);
  EXPECT_FALSE(search(problem, {}).plans.empty());
}

TEST(OddSequences, AreCutByTheDegreesThatDivideThem) {
  // 17,000 = 2^3 x 2,125: 4,250 tokens each over 4 devices. 2 divides them; 4 and 8 do not.
  const Problem problem = named_problem("tinyllama-1.1b", "2xA100-80GB:8", 2, 17000);
  for (const int tensor : {2, 4}) {
    const SearchResult found = search(problem, {.tensor = tensor, .context = 4});
    ASSERT_FALSE(found.plans.empty()) << tensor;
    for (const RankedPlan& ranked : found.plans)
      EXPECT_EQ(ranked.plan.sequence_parallel, tensor == 2) << describe(ranked.plan);
  }
}

TEST(OddSequences, ContradictAPinnedDegreeThatCannotCutThem) {
  const Problem problem = named_problem("tinyllama-1.1b", "2xA100-80GB:8", 2, 17000);
  Pins pins{.tensor = 4, .context = 4, .sequence_parallel = true};
  const auto violation = violation_of(problem, pins);
  ASSERT_TRUE(violation);
  EXPECT_EQ(violation->dimension, Dimension::tensor);
  EXPECT_EQ(violation->what,
            "4 does not divide the 4250 tokens of a sequence on each device, which "
            "`sequence_parallel` cuts");
  pins.tensor = 2;
  EXPECT_FALSE(violation_of(problem, pins));
}

TEST(OddSequences, AreNeverPlannedUnsoundly) {
  std::mt19937_64 random(7);
  const std::string clusters[] = {"4xA100-80GB:8", "3xA100-80GB:6", "2xH100:8+4xA100-40GB:4"};
  int solved = 0;
  for (int i = 0; i < 24; ++i) {
    const int sequence = 1000 + static_cast<int>(random() % 40000);
    const Problem problem =
        named_problem("tinyllama-1.1b", clusters[i % 3], 1 << (random() % 4), sequence);
    Pins pins;
    for (const int context : {8, 5, 4, 3, 2})
      if (random() % 3 == 0 && sequence % context == 0) pins.context = context;
    if (random() % 3 == 0) pins.tensor = 1 << (random() % 4);
    if (violation_of(problem, pins)) continue;
    for (const RankedPlan& ranked : search(problem, pins).plans) {
      ++solved;
      EXPECT_TRUE(check_plan(problem, ranked.plan).empty())
          << sequence << " " << describe(ranked.plan);
    }
  }
  EXPECT_GT(solved, 20);
}

}  // namespace
}  // namespace plait
