#include "search/moves/moves.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>
#include <string>

#include "cost/engine.h"
#include "plan/check.h"
#include "plan/describe.h"
#include "plan/sample_frameworks.h"
#include "plan/sample_problems.h"
#include "search/moves/descent.h"
#include "search/moves/improve.h"

namespace plait {
namespace {

// Two nodes of four fast devices and two of four that are half as fast, with a slow network; a GPT
// of 8 layers whose embedding is tied.
Problem mixed_problem() {
  DeviceType slow = samples::a100();
  slow.name = "slow";
  for (FlopsPerSecond& peak : slow.peak) peak = 0.5 * peak;
  Cluster cluster = samples::cluster_of(samples::a100(), 4, 4);
  cluster.device_types.push_back(slow);
  for (std::size_t d = 8; d < 16; ++d) cluster.devices[d].type = 1;
  for (Node& node : cluster.nodes) node.uplink.bandwidth = BytesPerSecond(3e9);
  Job job{.global_batch = 32};
  job.framework = samples::framework("megatron");
  return samples::problem_of(samples::gpt(8, 1024, 16, 1024), cluster, job);
}

Plan even_plan(const Problem& problem, int stages) {
  Plan plan;
  plan.micro_batches = 8;
  const int units = problem.model.unit_count();
  const int size = problem.cluster.device_count() / stages;
  for (int s = 0; s < stages; ++s) {
    Stage stage;
    stage.spans = {{.units = {s * units / stages, (s + 1) * units / stages}, .data = size}};
    for (int d = 0; d < size; ++d) stage.devices.push_back(DeviceId(s * size + d));
    plan.stages.push_back(stage);
  }
  return plan;
}

struct Walk {
  Problem problem = mixed_problem();
  Space space{problem, {}};
  Ground ground{space};
  CostEngine engine{problem};
  std::function<bool()> never = [] { return false; };
};

// What Ground takes for sound is what check_plan() takes for sound, wherever moves lead.
TEST(Moves, LeadToSoundPlansOnly) {
  Walk walk;
  std::map<std::string, int> made;
  std::mt19937_64 random(1);
  Draft draft = draft_of(even_plan(walk.problem, 4));
  for (int i = 0; i < 3000; ++i) {
    const Move& move = moves()[random() % moves().size()];
    const Estimate cost = walk.engine.outline(walk.ground.plan_of(draft));
    const Place place{walk.ground, draft, cost};
    Visitor counting([](Draft&&) { return true; }, Visitor::kNone);
    move.list(place, counting);
    if (counting.count() == 0) continue;
    Draft next = draft;
    Visitor making(
        [&](Draft&& other) {
          next = std::move(other);
          return true;
        },
        static_cast<int>(random() % static_cast<unsigned>(counting.count())));
    move.list(place, making);
    if (!walk.ground.is_sound(next)) continue;
    const Plan plan = walk.ground.plan_of(next);
    const std::vector<Violation> faults = check_plan(walk.problem, plan);
    ASSERT_TRUE(faults.empty()) << move.name << ": " << describe(plan) << "\n"
                                << faults.front().where << " " << faults.front().what;
    made[move.name] += plan != walk.ground.plan_of(draft) ? 1 : 0;
    draft = std::move(next);
  }
  // Every kind has made a different plan; experts and node swaps have nothing to do here.
  for (const Move& move : moves()) {
    if (std::string(move.name) == "experts") continue;
    EXPECT_GT(made[move.name], 0) << move.name;
  }
}

TEST(Moves, AVisitorMakesTheNeighbourThatIsAskedFor) {
  Walk walk;
  const Draft draft = draft_of(even_plan(walk.problem, 4));
  const Estimate cost = walk.engine.outline(walk.ground.plan_of(draft));
  const Place place{walk.ground, draft, cost};
  for (const Move& move : moves()) {
    std::vector<Plan> all;
    Visitor listing([&](Draft&& other) {
      all.push_back(walk.ground.plan_of(other));
      return false;
    });
    move.list(place, listing);
    std::vector<Plan> single;
    for (int i = 0; i < listing.count(); ++i) {
      Visitor making(
          [&](Draft&& other) {
            single.push_back(walk.ground.plan_of(other));
            return false;
          },
          i);
      move.list(place, making);
    }
    EXPECT_EQ(all, single) << move.name;
  }
}

// The costs that a search keeps are those that it would work out again, and no simulation is
// shorter than an outline.
TEST(StageMemo, ChangesNoCost) {
  Walk walk;
  StageMemo memo(walk.problem);
  std::mt19937_64 random(2);
  StageMemo own(walk.problem);
  Descent descent(walk.ground, walk.engine, own, 1e9, walk.never);
  Draft draft = draft_of(even_plan(walk.problem, 4));
  for (int i = 0; i < 1500; ++i) {
    const Move& move = moves()[random() % moves().size()];
    const Estimate cost = walk.engine.outline(walk.ground.plan_of(draft));
    std::vector<Draft> listed;
    Visitor listing([&](Draft&& other) {
      listed.push_back(std::move(other));
      return listed.size() > 40;
    });
    move.list({walk.ground, draft, cost}, listing);
    if (listed.empty() || !walk.ground.is_sound(listed[i % listed.size()])) continue;
    draft = listed[i % listed.size()];
    const Plan plan = walk.ground.plan_of(draft);
    const Estimate kept = walk.engine.simulate(plan, nullptr, &memo);
    const Estimate anew = walk.engine.simulate(plan);
    ASSERT_EQ(kept.step, anew.step) << describe(plan);
    ASSERT_EQ(kept.fits, anew.fits);
    const Estimate outline = walk.engine.outline(plan, &memo);
    ASSERT_LE(outline.step.value, anew.step.value * (1 + 1e-9)) << describe(plan);
    ASSERT_EQ(outline.fits, anew.fits);
    // A limit above the step changes nothing; one below may give the plan up.
    ASSERT_EQ(walk.engine.simulate(plan, nullptr, &memo, 1.01 * anew.step).step, anew.step);
    ASSERT_GE(walk.engine.simulate(plan, nullptr, &memo, 0.9 * anew.step).step, anew.step);
  }
}

TEST(Moves, ADescentNeverEndsUphill) {
  Walk walk;
  for (const int stages : {4, 8}) {  // 4 samples a micro-batch: at most 4 replicas
    StageMemo memo(walk.problem);
    Descent descent(walk.ground, walk.engine, memo, 20'000, walk.never);
    auto settled = descent.settle(draft_of(even_plan(walk.problem, stages)), false);
    ASSERT_TRUE(settled && settled->fits());
    descent.simulate(*settled);
    const Seconds before = settled->step;
    descent.wander(*settled, 0.02, 7);
    EXPECT_LE(settled->step, before);
    EXPECT_EQ(settled->step, walk.engine.simulate(walk.ground.plan_of(settled->draft)).step);
  }
}

TEST(Moves, ObeyPins) {
  const Problem problem = mixed_problem();
  Pins pins;
  pins.pipeline = 2;
  pins.tensor = 2;
  pins.schedule = Schedule::zb_h1;
  pins.zero = ZeroStage::off;
  const Space space(problem, pins);
  const CostEngine engine(problem);
  Shortlist found(engine, 5);
  SearchContext context{problem, {}, {}, {}, {}};
  context.options.pins = pins;
  MemoShelf memos(context.problem);
  improve(context, space, engine, memos, found, {}, [] { return false; });
  ASSERT_FALSE(found.empty());
  for (const RankedPlan& ranked : found.plans()) {
    EXPECT_EQ(ranked.plan.stage_count(), 2);
    EXPECT_EQ(ranked.plan.schedule, Schedule::zb_h1);
    EXPECT_EQ(ranked.plan.zero, ZeroStage::off);
    for (const Stage& stage : ranked.plan.stages) EXPECT_EQ(stage.spans.front().tensor, 2);
  }
}

TEST(Moves, GiveTheSamePlansOnAnyNumberOfThreads) {
  const Problem problem = mixed_problem();
  const Space space(problem, {});
  const CostEngine engine(problem);
  std::vector<std::vector<Plan>> answers;
  for (const int threads : {1, 3}) {
    Shortlist found(engine, 5);
    SearchContext context{problem, {}, {}, {}, {}};
    context.options.threads = threads;
    MemoShelf memos(context.problem);
    improve(context, space, engine, memos, found, {}, [] { return false; });
    answers.emplace_back();
    for (const RankedPlan& ranked : found.plans()) answers.back().push_back(ranked.plan);
  }
  EXPECT_FALSE(answers[0].empty());
  EXPECT_EQ(answers[0], answers[1]);
}

// Four nodes over a network of 0.1 GB/s and a tied embedding of 50 M parameters: summing its
// gradients over the network takes 2 s, inside a node a few ms. A pipeline over all nodes can have
// its ends on one node.
TEST(Moves, PutTheEndsOfAPipelineOnOneNode) {
  Problem problem = mixed_problem();
  problem.cluster = samples::cluster_of(samples::a100(), 4, 4);
  for (Node& node : problem.cluster.nodes) node.uplink.bandwidth = BytesPerSecond(1e8);
  const CostEngine engine(problem);
  const SearchContext context{problem, {.keep = 1}, {}, {}, {}};
  const Space space(problem, {});
  Shortlist found(engine, 5);
  found.offer(even_plan(problem, 4));
  const Seconds before = found.best();
  MemoShelf memos(context.problem);
  improve(context, space, engine, memos, found, {}, [] { return false; });
  EXPECT_LT(found.best(), 0.7 * before);
}

TEST(Apportioned, AddsUpAndLeavesNobodyOut) {
  EXPECT_EQ(apportioned(10, {1, 1, 2}), (std::vector<int>{3, 2, 5}));
  EXPECT_EQ(apportioned(3, {1, 1, 100}), (std::vector<int>{1, 1, 1}));
  EXPECT_TRUE(apportioned(2, {1, 1, 1}).empty());
}

// To where the next sample costs least, of equals to the first; none is left without.
TEST(Apportioned, AgreesWithHandingOutOneByOne) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 2000; ++i) {
    std::vector<double> weights(1 + random() % 20);
    for (double& weight : weights) weight = 1.0 + static_cast<double>(random() % 3) / 3;
    const int sum = static_cast<int>(weights.size() + random() % 60);
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    std::vector<int> shares;
    for (const double weight : weights)
      shares.push_back(std::max(1, static_cast<int>(sum * weight / total)));
    const auto load = [&](std::size_t k, int more) { return (shares[k] + more) / weights[k]; };
    int rest = sum - std::accumulate(shares.begin(), shares.end(), 0);
    for (; rest > 0; --rest) {
      std::size_t least = 0;
      for (std::size_t k = 1; k < shares.size(); ++k)
        if (load(k, 1) < load(least, 1)) least = k;
      ++shares[least];
    }
    const std::vector<int> given = apportioned(sum, weights);
    if (rest == 0) {
      EXPECT_EQ(given, shares);
    }
    EXPECT_EQ(std::accumulate(given.begin(), given.end(), 0), sum);
    EXPECT_GE(std::ranges::min(given), 1);
  }
}

}  // namespace
}  // namespace plait
