#include "app/clusters/replan.h"

#include <gtest/gtest.h>

#include "app/plan/sample_requests.h"
#include "plan/check.h"

namespace plait {
namespace {

using samples::complaint;

// A plan for 2 nodes of 2 devices.
ReplanRequest request() {
  PlanRequest plan = samples::small_plan_request();
  plan.source.cluster = "2xA10:2";
  PlanAnswer found = answer(plan, {});
  ReplanRequest request;
  request.before = {std::move(found.problem), std::move(found.result.plans.front().plan)};
  request.search.keep = 1;
  return request;
}

ReplanRequest lost_node() {
  ReplanRequest lost = request();
  lost.lost = {lost.before.problem.cluster.nodes[0].name};
  return lost;
}

TEST(ReplanAnswer, LostNodesAreGone) {
  const ReplanRequest lost = lost_node();
  const ReplanAnswer now = answer(lost, {});
  ASSERT_TRUE(now.found());
  EXPECT_EQ(now.after.cluster.device_count(), 2);
  EXPECT_EQ(now.device_before, (std::vector<int>{2, 3}));
  EXPECT_TRUE(check_plan(now.after, now.result.plan->plan).empty());
  EXPECT_GT(now.result.plan->cost.step, now.old_cost.step);
  EXPECT_EQ(now.pause(), Seconds(60) + now.result.migration.transfer);
}

TEST(ReplanAnswer, AddedNodesCome) {
  ReplanRequest more = request();
  more.lost_devices = {{1, 2}};
  more.add = {"1xA10:2"};
  const ReplanAnswer now = answer(more, {});
  EXPECT_EQ(now.device_before, (std::vector<int>{0, 3, -1, -1}));
}

// H100s alone have other constants than H100s in clusters; those that come are in one.
TEST(ReplanAnswer, AddedDevicesAreThoseOfAPlanForTheWholeCluster) {
  PlanRequest plan = samples::small_plan_request();
  plan.source.cluster = "H100";
  PlanAnswer found = answer(plan, {});
  ReplanRequest more;
  more.before = {std::move(found.problem), std::move(found.result.plans.front().plan)};
  more.add = {"H100"};
  const ReplanAnswer now = answer(more, {});
  plan.source.cluster = "H100+H100";
  const Cluster whole = answer(plan, {}).problem.cluster;
  EXPECT_EQ(now.after.cluster.device_types, whole.device_types);
  EXPECT_EQ(now.after.cluster.device_types.size(), 1u);
}

TEST(ReplanAnswer, IdleDevicesAreSaidWithTheReason) {
  ReplanRequest lost = request();
  lost.lost_devices = {{1, 1}};
  lost.search.pins = {.tensor = 1, .pipeline = 1, .data = 1, .context = 1};  // one device
  const ReplanAnswer now = answer(lost, {});
  ASSERT_TRUE(now.found());
  EXPECT_NE(
      as_text(now, {.columns = 200})
          .find("The new plan leaves 2 of the 3 devices idle: Megatron-LM uses all devices of "
                "a node or none.\n"),
      std::string::npos)
      << as_text(now, {.columns = 200});
  EXPECT_EQ(as_text(answer(lost_node(), {}), {}).find("idle"), std::string::npos);
  lost.search.pins.data = 2;  // of each node one
  const std::string two = as_text(answer(lost, {}), {.columns = 200});
  EXPECT_NE(two.find("1 of the 3 devices stays out: Megatron-LM uses all devices of a node"),
            std::string::npos)
      << two;
}

TEST(ReplanAnswer, SlowNodesMakeSlowerPlans) {
  ReplanRequest slow = request();
  slow.slow = {{slow.before.problem.cluster.nodes[1].name, 0.25}};
  const ReplanAnswer now = answer(slow, {});
  EXPECT_GT(now.result.plan->cost.step, now.old_cost.step);
}

TEST(ReplanAnswer, WrongChangesNameTheField) {
  ReplanRequest wrong = request();
  const auto words = [&] { return complaint([&] { answer(wrong, {}); }); };
  EXPECT_EQ(words(), "plait replan: what changed? Give `lost`, `lost_devices`, `slow` or `add`");
  wrong.lost_devices = {{0, 4}};
  EXPECT_EQ(words(), "`lost_devices`: ids are from 0 to 3, not '0-4'");
  wrong.lost_devices = {{0, 3}};
  EXPECT_EQ(words(), "`lost_devices`: takes all devices; nothing is left to plan for");
  wrong.lost_devices.clear();
  wrong.lost = {"nowhere"};
  EXPECT_TRUE(words().starts_with("`lost`: no node is called 'nowhere'"));
  wrong.lost.clear();
  wrong.slow = {{wrong.before.problem.cluster.nodes[0].name, 0}};
  EXPECT_EQ(words(), "`slow`: must be from 0.001 to 1000, is 0");
}

// 3 nodes of 7 and one of 8: few degrees divide what whole nodes have.
TEST(ReplanAnswer, NodesThatLostDevicesMayLeaveMoreOut) {
  PlanRequest plan = samples::small_plan_request();
  plan.source.model = "llama-2-7b";
  plan.source.cluster = "4xA100-80GB:8";
  plan.source.job.global_batch = 256;
  PlanAnswer found = answer(plan, {});
  ReplanRequest lost;
  lost.before = {std::move(found.problem), std::move(found.result.plans.front().plan)};
  lost.lost_devices = {{7, 8}, {31, 31}};
  const ReplanAnswer now = answer(lost, {});
  ASSERT_TRUE(now.found());
  ASSERT_GT(now.left_out, 0);
  EXPECT_EQ(now.after.cluster.device_count() + now.left_out, 29);
  EXPECT_TRUE(check_plan(now.after, now.result.plan->plan).empty());
  ReplanRequest node = lost;  // a whole node less should not be better
  node.lost_devices = {{0, 7}};
  EXPECT_LE(now.result.plan->cost.step, answer(node, {}).result.plan->cost.step);
}

}  // namespace
}  // namespace plait
