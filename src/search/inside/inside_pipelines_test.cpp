#include "search/inside/inside_pipelines.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "base/drawn_by.h"
#include "plan/check.h"
#include "plan/sample_problems.h"
#include "search/bound/proof.h"
#include "search/space/space.h"
#include "search/space/units/layers.h"

namespace plait {
namespace {

// A small GPT on devices that have room for part of what it would keep.
struct RandomProblem {
  Problem problem;
  Target target;

  explicit RandomProblem(unsigned seed) {
    std::mt19937 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % n); };
    Job job;
    job.global_batch = 8 << below(3);
    job.attention = below(2) == 0 ? AttentionKernel::plain : AttentionKernel::flash;
    const int nodes = 1 + below(2);
    problem = samples::problem_of(
        samples::gpt(2 + below(5), 512 << below(2), 8, 512 << below(2)),
        samples::cluster_of(samples::a100(), nodes, 1 << below(nodes == 1 ? 3 : 2)), job);
    const double share = 0.008 + 0.004 * below(8);
    problem.job.memory_limit = share * problem.cluster.device_types.front().memory;
    target = *target_named(below(2) == 0 ? "plait" : "aceso");
    if (target.name == "aceso") problem.job.precision = Precision::fp32;
  }
  Problem by_ops() const {
    Problem fine = problem;
    fine.model = at_op_granularity(problem.model);
    return fine;
  }
  SearchResult search(const Problem& own, std::size_t planner) const {
    SearchOptions options{.keep = 1};
    options.target = target;
    return run_search(planners()[planner], {own, options, {}, {}, {}});
  }
};

constexpr std::size_t kAuto = 0;
constexpr std::size_t kAceso = 4;

struct Compared {
  int planned = 0;
  int better = 0;  // by 1 % at least
  int bounded = 0;
};

Compared compare(unsigned first, unsigned count) {
  Compared out;
  for (unsigned seed = first; seed < first + count; ++seed) {
    const RandomProblem random(seed);
    const Problem fine = random.by_ops();
    const SearchResult layers = random.search(random.problem, kAuto);
    const SearchResult ops = random.search(fine, kAuto);
    const SearchResult aceso = random.search(fine, kAceso);
    EXPECT_LE(layers.plans.empty() ? 0 : 1, ops.plans.empty() ? 0 : 1) << "seed " << seed;
    if (ops.plans.empty()) continue;
    ++out.planned;
    const Seconds best = ops.plans.front().cost.step;
    EXPECT_TRUE(check_plan(fine, ops.plans.front().plan).empty()) << "seed " << seed;
    EXPECT_EQ(why_not(random.target, fine, ops.plans.front().plan), std::nullopt);
    if (ops.lower_bound) {
      ++out.bounded;
      EXPECT_LE(*ops.lower_bound, (1 + 1e-9) * best) << "seed " << seed;
    }
    if (!aceso.plans.empty()) {
      EXPECT_LE(best, (1 + 1e-9) * aceso.plans.front().cost.step) << "seed " << seed;
      const Seconds bound = ops.lower_bound.value_or(Seconds(0));
      EXPECT_LE(bound, (1 + 1e-9) * aceso.plans.front().cost.step) << "seed " << seed;
    }
    if (layers.plans.empty()) continue;
    EXPECT_LE(best, (1 + 1e-9) * layers.plans.front().cost.step) << "seed " << seed;
    if (best < 0.99 * layers.plans.front().cost.step) ++out.better;
  }
  return out;
}

TEST(InsidePipelines, AreNeverWorseThanLayersNorThanAceso) {
  const Compared seen = compare(1, 20);
  EXPECT_GT(seen.planned, 10);
  EXPECT_GT(seen.bounded, 10);
}

// Shards of one test, so that they can run side by side: 20 x 25 = 500 problems. PLAIT_TEST_SEED
// draws others.
class SlowInsidePipelines : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Slow, SlowInsidePipelines, testing::Range(0, 20));

TEST_P(SlowInsidePipelines, AreNeverWorseThanLayersNorThanAceso) {
  const Compared seen = compare(1000 + 10'000 * drawn_by() + 25 * GetParam(), 25);
  fmt::print("{} of 25 problems have a plan, {} of these a better one op by op\n", seen.planned,
             seen.better);
  EXPECT_GT(seen.planned, 12);
  EXPECT_GT(seen.better, 2);
}

// Models by layers, and programs that recompute all layers alike, are left to other searches.
TEST(InsidePipelines, AreForOpsAndProgramsThatRunThem) {
  const RandomProblem random(1);
  const Problem fine = random.by_ops();
  const auto may = [](const Problem& problem, std::string_view program) {
    SearchOptions options;
    options.target = *target_named(program);
    const Space space(problem, options.pins, options.target);
    SearchContext context{problem, options, {}, {}, {}};
    context.space = &space;
    return may_choose_inside(context);
  };
  EXPECT_TRUE(may(fine, "aceso"));
  EXPECT_TRUE(may(fine, "plait"));
  EXPECT_TRUE(may(fine, "any"));
  EXPECT_FALSE(may(fine, "megatron"));
  EXPECT_FALSE(may(random.problem, "plait"));
}

}  // namespace
}  // namespace plait
