#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cost/stage_cost.h"
#include "named_problem.h"
#include "plan/check.h"
#include "plan/describe.h"
#include "random_problem.h"
#include "search/auto/candidates.h"
#include "search/auto/fit_first.h"
#include "search/auto/label_search.h"
#include "search/auto/uniform_pool_pipelines.h"
#include "search/bound/send_lower_bound.h"
#include "search/bound/stage_table.h"
#include "search/bound/tied_sync_lower_bound.h"
#include "search/space/schedules.h"
#include "search/space/shortlist.h"

// The parts of the search, one by one, on random problems: what is said to be a bound is never
// above what the simulation says, and what is said to be a plan is one.
namespace plait {
namespace {

constexpr double kRounding = 1e-9;

Problem random_networked_problem(std::mt19937_64& random, int i) {
  Problem problem = random_problem(random, 2 + i % 8, 2 + i % 14);
  if (random() % 2 == 0)
    for (Node& node : problem.cluster.nodes)
      node.uplink.bandwidth = node.uplink.bandwidth / static_cast<double>(1 + random() % 100);
  const int units = problem.model.unit_count();
  if (units > 1 && random() % 2 == 0) problem.model.ties = {{0, units - 1, 3e7}};
  return problem;
}

// Stages that the options allow, placed as the planners place them; empty when devices run out.
std::vector<PlacedStage> random_stages(std::mt19937_64& random, const Space& space,
                                       StageTable& table) {
  std::vector<PlacedStage> from_end;
  std::vector<int> used(space.pools().size(), 0);
  for (int end = space.problem().model.unit_count(); end > 0;) {
    if (table.option_count() == 0) return {};
    const int o = static_cast<int>(random() % table.option_count());
    std::vector<int> begin;
    if (!table.place(o, used, begin)) return {};
    const StageOption& option = table.option_at(o);
    for (std::size_t i = 0; i < begin.size(); ++i)
      used[option.takes[i].pool] = begin[i] + option.takes[i].devices;
    const int from = static_cast<int>(random() % end);
    from_end.push_back(
        {option, begin, {from, end}, UnitsRecomputed::all(space.recomputes().front())});
    end = from;
  }
  return {from_end.rbegin(), from_end.rend()};
}

Seconds tied_time(const Problem& problem, const Plan& plan) {
  Seconds sum;
  for (const Tie& tie : problem.model.ties)
    if (plan.stage_count() > 1)
      sum += tied_sync_time(problem, tie, plan.stages.front().devices, plan.stages.back().devices,
                            plan.stages.back().spans.back().tensor);
  return sum;
}

void expect_bounds(const Space& space, StageTable& table, const CostEngine& engine,
                   const std::vector<PlacedStage>& stages) {
  const Problem& problem = space.problem();
  const Plan plan = space.plan_of(stages, table.settings(), table.schedule());
  ASSERT_TRUE(check_plan(problem, plan).empty()) << describe(plan);
  const SendLowerBound sends(space, table.settings());
  const TiedSyncLowerBound tied(space, table.options());
  PipelineSuffix tail;
  for (std::size_t s = stages.size(); s-- > 0;) {
    const PlacedStage& stage = stages[s];
    const auto at = std::ranges::find(table.options(), stage.option);
    RunCosts& runs = table.runs(static_cast<int>(at - table.options().begin()), stage.begin);
    const StageTime time = runs.cost(stage.units, stage.recompute);
    EXPECT_LE(runs.alone(stage.units).total(), time.total() * (1 + kRounding)) << describe(plan);
    Seconds send;
    if (s + 1 < stages.size()) {
      const int unit = stage.units.end;
      send = sends.between(stage.option, stages[s + 1].option, unit);
      const Seconds real = hand_over_time(problem, plan, plan.stages[s], plan.stages[s + 1], unit);
      EXPECT_LE(send, real * (1 + kRounding)) << describe(plan);
      EXPECT_LE(sends.beside(stage.option), real * (1 + kRounding)) << describe(plan);
    }
    tail.prepend(time, send, table.rhythm());
  }
  if (stages.size() > 1 && tied.any()) {
    const Seconds real = tied_time(problem, plan);
    const StageOption& last = stages.back().option;
    const Seconds between = tied.between(stages.front().option, stages.front().begin.front(), last);
    EXPECT_LE(between, real * (1 + kRounding)) << describe(plan);
    EXPECT_LE(tied.with_last(last), between * (1 + kRounding)) << describe(plan);
  }
  const Estimate cost = engine.simulate(plan);
  EXPECT_LE(tail.step(), cost.step * (1 + kRounding)) << describe(plan);
  EXPECT_LE(table.bounds().any_step(), cost.step * (1 + kRounding)) << describe(plan);
  EXPECT_LE(table.bounds().least_round_trip(), cost.step * (1 + kRounding)) << describe(plan);
}

TEST(SearchParts, NeverSayMoreThanTheSimulation) {
  std::mt19937_64 random(11);
  int compared = 0;
  int pipelines = 0;
  for (int i = 0; i < 120; ++i) {
    const Problem problem = random_networked_problem(random, i);
    const Space space(problem, {});
    const CostEngine engine(problem);
    const PlanSettings& settings = space.settings()[random() % space.settings().size()];
    StageTable table(space, engine, settings, Schedule::one_f_one_b);
    for (int k = 0; k < 12; ++k) {
      const std::vector<PlacedStage> stages = random_stages(random, space, table);
      if (stages.empty() || static_cast<int>(stages.size()) > space.max_stages(settings)) continue;
      ++compared;
      pipelines += stages.size() > 1 ? 1 : 0;
      expect_bounds(space, table, engine, stages);
    }
  }
  EXPECT_GT(compared, 300);
  EXPECT_GT(pipelines, 50);
}

// All units, in order, on stages that fit.
void expect_plan(const Space& space, const CostEngine& engine, const StageTable& table,
                 const Pipelined& pipeline) {
  for (const Plan& plan : space.plans_of(pipeline.stages, table.settings())) {
    ASSERT_TRUE(check_plan(space.problem(), plan).empty()) << describe(plan);
    const Estimate cost = engine.simulate(plan);
    EXPECT_TRUE(cost.fits) << describe(plan);
    EXPECT_LE(pipeline.length, cost.step * (1 + kRounding)) << describe(plan);
  }
}

TEST(SearchParts, FindPipelinesThatFit) {
  std::mt19937_64 random(12);
  const auto go_on = [] { return false; };
  int found = 0;
  int fitted = 0;
  for (int i = 0; i < 60; ++i) {
    const Problem problem = random_networked_problem(random, i);
    const Space space(problem, {});
    const CostEngine engine(problem);
    const PlanSettings& settings = space.settings()[random() % space.settings().size()];
    StageTable table(space, engine, settings, Schedule::one_f_one_b);
    const Seconds any(HUGE_VAL);
    Seconds shortest = any;
    for (const Promising which : {Promising::most, Promising::less}) {
      const std::vector<Pipelined> uniform =
          uniform_pool_pipelines(space, table, which, any, go_on);
      EXPECT_LE(uniform.size(), 4u);
      EXPECT_TRUE(std::ranges::is_sorted(uniform, {}, &Pipelined::length));
      for (const Pipelined& pipeline : uniform) expect_plan(space, engine, table, pipeline);
    }
    for (const int width : {8, 0}) {
      const LabelResult labels =
          label_search(space, table, {.keep = 6, .incumbent = any, .width = width}, go_on);
      for (const Pipelined& pipeline : labels.pipelines) {
        ++found;
        shortest = std::min(shortest, pipeline.length);
        expect_plan(space, engine, table, pipeline);
        EXPECT_LE(labels.lower_bound, pipeline.length * (1 + kRounding));
      }
      if (width == 0 && labels.proven && !labels.pipelines.empty()) {
        EXPECT_LE(labels.pipelines.front().length, shortest * (1 + kRounding));
      }
    }
    if (const auto pipeline = fit_first(space, table, go_on)) {
      ++fitted;
      expect_plan(space, engine, table, *pipeline);
    }
  }
  EXPECT_GT(found, 60);
  EXPECT_GT(fitted, 20);
}

TEST(SearchParts, ListSettingsByTheirBounds) {
  const Problem problem = named_problem("gpt2-large", "2xA100-80GB:8", 32);
  const Space space(problem, {});
  const CostEngine engine(problem);
  SearchContext context{problem, {}, {}, {}, {}};
  context.deadline = std::chrono::steady_clock::time_point::max();
  Candidates candidates(context, space, engine, Schedule::one_f_one_b, {.single_apart = true});
  std::vector<Candidate>& pipelined = candidates.pipelined();
  ASSERT_GT(pipelined.size(), 3u);
  EXPECT_TRUE(candidates.is_complete());
  EXPECT_TRUE(std::ranges::is_sorted(pipelined, {}, &Candidate::bound));
  EXPECT_EQ(candidates.lowest_open({}, Seconds(HUGE_VAL)), (std::vector<int>{0, 1}));
  // Four times the effort for what is below the second bound: the first alone.
  double effort = 100;
  candidates.raise_efforts(pipelined[1].bound, false, effort);
  EXPECT_EQ(pipelined[0].effort, 4);
  EXPECT_EQ(pipelined[1].effort, 1);
  EXPECT_EQ(effort, 96);
}

TEST(SearchParts, StoppedBeforeTheyBeginBoundNothing) {
  const Problem problem = named_problem("gpt2-large", "2xA100-80GB:8", 32);
  const Space space(problem, {});
  const CostEngine engine(problem);
  const SearchContext late{problem, {}, {}, {}, {}};  // its deadline has passed
  Candidates candidates(late, space, engine, Schedule::one_f_one_b, {});
  EXPECT_FALSE(candidates.is_complete());
  EXPECT_EQ(candidates.lowest_bound(), Seconds(0));
}

}  // namespace
}  // namespace plait
