#include <gtest/gtest.h>

#include <algorithm>

#include "plan/describe.h"
#include "random_problem.h"
#include "search/auto/branch_and_bound.h"
#include "search/bound/proof.h"
#include "search/bound/stage_table.h"
#include "search/space/schedules.h"
#include "search/space/search.h"
#include "search/space/shortlist.h"

// Bounds that prune must never be above what they bound. The truth is exhaustive search.
namespace plait {
namespace {

// Of sums in another order.
constexpr double kTolerance = 1e-9;

// A random problem, every other one on a network that matters: slow, in zones, or with slow nodes.
Problem networked_problem(std::mt19937_64& random, int units, int devices) {
  Problem problem = random_problem(random, units, devices);
  Cluster& cluster = problem.cluster;
  if (random() % 2 == 0) {
    const double slow = 1 + static_cast<double>(random() % 300);
    for (Node& node : cluster.nodes) node.uplink.bandwidth = node.uplink.bandwidth / slow;
  }
  if (random() % 3 == 0) {
    cluster.zones = {"here", "there"};
    cluster.zone_links = {
        {0, 1, {BytesPerSecond(1e8 * static_cast<double>(1 + random() % 20)), Seconds(1e-3)}}};
    for (Node& node : cluster.nodes) node.zone = static_cast<int>(random() % 2);
  }
  if (random() % 3 == 0)
    for (Node& node : cluster.nodes)
      node.intra.bandwidth = BytesPerSecond(1e9 * static_cast<double>(1 + random() % 50));
  Model& model = problem.model;
  if (model.unit_count() > 1 && random() % 3 == 0)
    model.ties = {{0, model.unit_count() - 1, 1e6 * static_cast<double>(1 + random() % 100)}};
  return problem;
}

bool same_settings(const PlanSettings& settings, const Plan& plan) {
  // Without tensor parallelism there is nothing that sequence parallelism could cut.
  const bool uncut = std::ranges::all_of(
      plan.stages, [](const Stage& stage) { return stage.spans.front().tensor == 1; });
  return (uncut || settings.sequence_parallel == plan.sequence_parallel) &&
         settings.micro_batches == plan.micro_batches && settings.zero == plan.zero &&
         settings.context == plan.context && settings.expert == plan.expert;
}

struct Counts {
  int solved = 0;
  int bounds = 0;  // that were compared with the best plan of their settings
  int tight = 0;   // of these, within 5 % of it
  // Nine of ten were when this was written; a bound that says nothing must not pass.
  void expect_tight() const {
    EXPECT_GE(tight, 0.85 * bounds) << solved << " problems, " << bounds << " bounds";
    EXPECT_GE(bounds, solved);
  }
};

void check_bounds(std::mt19937_64& random, int problems, Counts& counts) {
  const Planner& exhaustive = planners().back();
  for (int i = 0; counts.solved < problems; ++i) {
    const Problem problem = networked_problem(random, 1 + i % 6, 2 + i % 7);
    SearchContext context{problem, {.keep = 1}, {}, {}, {}};
    if (random() % 3 == 0) context.options.pins.schedule = Schedule::gpipe;
    if (random() % 3 != 0) context.options.pins.zero = ZeroStage::off;
    // Plans without a pipeline are often best, and bounded by themselves; not so with these pins.
    const int longest = std::min(problem.model.unit_count(), problem.cluster.device_count());
    if (random() % 3 == 0 && longest > 1)
      context.options.pins.pipeline = 2 + static_cast<int>(random() % (longest - 1));
    const std::vector<int> micro_batches = divisors_of(problem.job.global_batch);
    if (random() % 2 == 0)
      context.options.pins.micro_batches = micro_batches[random() % micro_batches.size()];
    context.options.max_evaluations = 3000;
    const SearchResult truth = run_search(exhaustive, context);
    if (truth.cut_short || truth.plans.empty()) continue;
    ++counts.solved;
    const RankedPlan& best = truth.plans.front();
    const Space space(problem, context.options.pins);
    const CostEngine engine(problem);
    // Bounds hold for plans that compute no more twice than they must. No planner but the
    // exhaustive one does more of that; where a layer waits for the host, it saves a little of a
    // forward pass.
    const double tolerance = kTolerance + most_saved_forward(context, engine);
    for (const PlanSettings& settings : space.settings()) {
      if (!same_settings(settings, best.plan)) continue;
      StageTable table(space, engine, settings, searched_schedule(context.options.pins));
      ASSERT_LE(table.bounds().any_step() / best.cost.step, 1 + tolerance) << "problem " << i;
      const double above = 1 + 0.05 * static_cast<double>(random() % 10);
      // Being stopped at any moment leaves a bound that holds.
      std::uint64_t questions = random() % 30;
      const Seconds stopped = table.tighten(best.cost.step * above, {1e6},
                                            [&] { return questions == 0 || --questions == 0; });
      ASSERT_LE(stopped / best.cost.step, 1 + tolerance)
          << "problem " << i << " " << describe(best.plan);
      const Seconds bound = table.tighten(best.cost.step * above, {1e6});
      ASSERT_LE(bound / best.cost.step, 1 + tolerance)
          << "problem " << i << " " << describe(best.plan);
      ++counts.bounds;
      counts.tight += bound > 0.95 * best.cost.step ? 1 : 0;
      // No bound on an open pipeline cuts the best one off.
      Shortlist found(engine, 1);
      std::int64_t nodes = 1'000'000;
      branch_and_bound(space, table, found, nodes, [] { return false; });
      ASSERT_FALSE(found.empty()) << "problem " << i << " " << describe(best.plan);
      ASSERT_NEAR(found.best() / best.cost.step, 1, tolerance)
          << "problem " << i << " " << describe(best.plan);
    }
  }
}

class OracleBound : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Shards, OracleBound, testing::Range(0, 4));
class BoundOracle : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Slow, BoundOracle, testing::Range(0, 10));

TEST_P(OracleBound, IsNeverAboveTheBestPlan) {
  std::mt19937_64 random(3000 + GetParam());
  Counts counts;
  check_bounds(random, 60, counts);
  counts.expect_tight();
}

TEST_P(BoundOracle, IsNeverAboveTheBestPlanOnThousands) {
  std::mt19937_64 random(5000 + GetParam());
  Counts counts;
  check_bounds(random, 400, counts);
  counts.expect_tight();
}

}  // namespace
}  // namespace plait
