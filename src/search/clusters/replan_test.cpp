#include "search/clusters/replan.h"

#include <gtest/gtest.h>

#include "cost/framework/framework.h"
#include "plan/sample_plans.h"
#include "search/clusters/held_state.h"

namespace plait {
namespace {

// One node of eight equal devices and a plan of one stage on the first tensor * data of them.
Plan one_stage(int units, int tensor, int data, ZeroStage zero) {
  Plan plan;
  plan.zero = zero;
  Stage stage;
  stage.spans = {{.units = {0, units}, .tensor = tensor, .data = data}};
  for (int d = 0; d < tensor * data; ++d) stage.devices.push_back(DeviceId(d));
  plan.stages = {stage};
  return plan;
}

Problem one_node() {
  Problem problem = samples::sample_problem();
  problem.cluster = samples::sample_cluster(1, 1);
  return problem;
}

std::vector<int> identity(int count) {
  std::vector<int> out;
  for (int i = 0; i < count; ++i) out.push_back(i);
  return out;
}

// Weights and optimizer state of the whole model; the tied table is there twice.
double all_bytes(const Problem& problem) {
  const StateBytes bytes = state_bytes(problem.job);
  return (problem.model.parameters() + 512.0 * 50257) * (bytes.weight + bytes.optimizer);
}

TEST(HeldState, ZeroCutsTheOptimizerState) {
  const Problem problem = one_node();
  const StateBytes bytes = state_bytes(problem.job);
  const double parameters = problem.model.parameters() + 512.0 * 50257;
  // Tensor 2 halves both; two copies halve the optimizer state once more.
  const HeldState held(problem.model, problem.job, one_stage(8, 2, 2, ZeroStage::optimizer), 8);
  EXPECT_NEAR(held.held(0).value, parameters * (bytes.weight / 2 + bytes.optimizer / 4), 1);
  EXPECT_EQ(held.held(5).value, 0);
}

TEST(HeldState, CopiesSurviveTheLossOfOne) {
  const Problem problem = one_node();
  const HeldState copies(problem.model, problem.job, one_stage(8, 1, 2, ZeroStage::off), 8);
  std::vector<bool> survives(8, true);
  survives[1] = false;
  EXPECT_EQ(copies.lost(survives).value, 0);
  // Cut over two devices, half of the optimizer state is gone with one of them.
  const HeldState cut(problem.model, problem.job, one_stage(8, 1, 2, ZeroStage::optimizer), 8);
  const double parameters = problem.model.parameters() + 512.0 * 50257;
  EXPECT_NEAR(cut.lost(survives).value, parameters * state_bytes(problem.job).optimizer / 2, 1);
}

TEST(Migration, NothingMovesBetweenEqualPlans) {
  const Problem problem = one_node();
  const Plan plan = one_stage(8, 2, 2, ZeroStage::optimizer);
  const Migration moves = migration(problem, plan, problem, plan, identity(8));
  EXPECT_EQ(moves.moved.value, 0);
  EXPECT_EQ(moves.lost.value, 0);
  EXPECT_EQ(moves.transfer.value, 0);
  EXPECT_EQ(moves.devices.size(), 4U);
}

TEST(Migration, HalfMovesWhenATensorPairBecomesOneDevice) {
  const Problem problem = one_node();
  const Migration moves = migration(problem, one_stage(8, 2, 1, ZeroStage::off), problem,
                                    one_stage(8, 1, 1, ZeroStage::off), identity(8));
  EXPECT_NEAR(moves.moved.value, all_bytes(problem) / 2, 1);
  // The other half is in the same node: 300 GB/s.
  EXPECT_EQ(moves.over_network.value, 0);
  EXPECT_NEAR(moves.transfer.value, all_bytes(problem) / 2 / 300e9, 1e-9);
}

TEST(Migration, ANewNodeReceivesEverythingOverTheNetwork) {
  Problem before = samples::sample_problem();
  before.cluster = samples::sample_cluster(1, 1);
  Problem after = before;
  after.cluster = samples::sample_cluster(2, 2);
  std::vector<int> device_before = identity(8);
  device_before.resize(16, -1);
  Plan plan = one_stage(8, 1, 1, ZeroStage::off);
  Plan moved = plan;
  moved.stages[0].devices = {DeviceId(8)};
  const Migration moves = migration(before, plan, after, moved, device_before);
  EXPECT_NEAR(moves.moved.value, all_bytes(before), 1);
  EXPECT_NEAR(moves.over_network.value, all_bytes(before), 1);
  // 25 GB/s into the node.
  EXPECT_NEAR(moves.transfer.value, all_bytes(before) / 25e9, 1e-9);
  EXPECT_EQ(moves.lost.value, 0);
}

TEST(ChangedCluster, LosesSlowsAndAdds) {
  const Cluster before = samples::sample_cluster(3, 2);
  ClusterChange change;
  change.lost.assign(24, false);
  for (int i = 0; i < 8; ++i) change.lost[i] = true;
  change.speed = {1, 0.5, 1};
  change.added = {samples::sample_cluster(1, 1)};
  const ChangedCluster after = changed_cluster(before, change);
  ASSERT_EQ(after.cluster.device_count(), 24);
  EXPECT_EQ(after.before[0], 8);
  EXPECT_EQ(after.before[15], 23);
  EXPECT_EQ(after.before[16], -1);
  EXPECT_EQ(after.cluster.type_of(DeviceId(0)).name, "Fast at 50 %");
  EXPECT_DOUBLE_EQ(after.cluster.type_of(DeviceId(0)).peak[static_cast<int>(DType::bf16)].value,
                   156e12);
  EXPECT_EQ(after.cluster.type_of(DeviceId(16)).name, "Fast");
  EXPECT_EQ(after.cluster.nodes[2].name, "node0");
  EXPECT_EQ(after.cluster.nodes[2].zone, after.cluster.nodes[0].zone);
}

Replanned replanned(const Problem& before, const Plan& plan, const ChangedCluster& changed,
                    Problem& after) {
  after = before;
  after.cluster = changed.cluster;
  return replan(planners().front(), {after, {.keep = 1}, {}, {}, {}}, before, plan, changed.before);
}

TEST(Replan, NothingMovesWhenNothingChanged) {
  Problem before = samples::sample_problem();
  before.cluster = samples::sample_cluster(2, 2);
  const Plan plan =
      run_search(planners().front(), {before, {.keep = 1}, {}, {}, {}}).plans.at(0).plan;
  Problem after;
  const Replanned found = replanned(before, plan, changed_cluster(before.cluster, {}), after);
  EXPECT_TRUE(found.kept);
  EXPECT_EQ(found.plan->plan, plan);
  EXPECT_EQ(found.migration.moved.value, 0);
}

TEST(Replan, SurvivorsKeepTheirRoles) {
  Problem before = samples::sample_problem();
  before.cluster = samples::sample_cluster(3, 3);
  before.job.global_batch = 24;
  const Plan plan =
      run_search(planners().front(), {before, {.keep = 1}, {}, {}, {}}).plans.at(0).plan;
  ClusterChange change;
  change.lost.assign(24, false);
  for (int i = 0; i < 8; ++i) change.lost[i] = true;
  Problem after;
  const Replanned found = replanned(before, plan, changed_cluster(before.cluster, change), after);
  ASSERT_TRUE(found.plan.has_value());
  EXPECT_FALSE(found.kept);
  const SearchResult fresh = run_search(planners().front(), {after, {.keep = 1}, {}, {}, {}});
  EXPECT_NEAR(found.plan->cost.step / fresh.plans.at(0).cost.step, 1, 1e-9);
  const Migration unmatched = migration(before, plan, after, fresh.plans[0].plan,
                                        changed_cluster(before.cluster, change).before);
  EXPECT_LE(found.migration.moved, unmatched.moved);
}

}  // namespace
}  // namespace plait
