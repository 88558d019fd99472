#include "plan/describe.h"

#include <gtest/gtest.h>

#include "base/sample_complaint.h"
#include "plan/check.h"
#include "plan/sample_plans.h"

namespace plait {
namespace {

// Stages of the given units on `size` consecutive devices each, tensor 2.
Plan plan_of(const std::vector<int>& layers, int size) {
  Plan plan;
  int unit = 0;
  int device = 0;
  for (const int count : layers) {
    Stage stage;
    stage.spans = {{.units = {unit, unit + count}, .tensor = 2, .data = size / 2}};
    for (int d = 0; d < size; ++d) stage.devices.push_back(DeviceId{device++});
    unit += count;
    plan.stages.push_back(stage);
  }
  return plan;
}

std::string complaint(std::string_view text) {
  return samples::complaint([&] { parse_description("--plan", text); });
}

TEST(Describe, ReadsWellInTheUsualCase) {
  Plan plan = plan_of({13, 12, 12, 13}, 16);
  plan.micro_batches = 32;
  plan.zero = ZeroStage::optimizer;
  plan.sequence_parallel = true;
  for (Stage& stage : plan.stages) stage.spans[0].recompute = Recompute::full;
  EXPECT_EQ(describe(plan),
            "pp4 tp2 dp8 m32 1f1b zero1 sp recompute=full layers=13,12,12,13 devices=0-63");
}

TEST(Describe, SaysOnceWhatAllStagesShare) {
  EXPECT_EQ(describe(plan_of({8, 8}, 4)), "pp2 tp2 dp2 m1 1f1b layers=8 devices=0-7");
}

TEST(Describe, ListsWhatDiffersByStageAndBySpan) {
  Plan plan = plan_of({8, 8}, 4);
  plan.context = 2;
  plan.expert = 2;
  plan.offload = 0.1;
  for (Stage& stage : plan.stages) stage.spans[0].data = 1;
  plan.stages[0].spans = {{.units = {0, 3}, .tensor = 1, .data = 2, .recompute = Recompute::full},
                          {.units = {3, 8}, .tensor = 2, .data = 1, .split = 1}};
  plan.stages[1].devices = {DeviceId{16}, DeviceId{17}, DeviceId{9}, DeviceId{8}};
  EXPECT_EQ(describe(plan),
            "pp2 tp1+2,2 dp2+1,1 cp2 ep2 m1 1f1b offload=0.1 recompute=full+none,none split=0+1,0 "
            "layers=3+5,8 devices=0-3|16-17,9,8");
  EXPECT_EQ(parse_description("", describe(plan)), plan);
}

TEST(Describe, FoldsStagesThatRepeat) {
  const Plan plan = plan_of({11, 10, 10, 10, 10, 10, 9, 9}, 2);
  EXPECT_EQ(describe(plan), "pp8 tp2 dp1 m1 1f1b layers=11,[10]*5,9,9 devices=0-15");
  EXPECT_EQ(parse_description("", describe(plan)), plan);
}

TEST(Describe, JoinsChunksByASlash) {
  Plan plan = plan_of({2, 2}, 4);
  plan.schedule = Schedule::zb_v;
  for (int s = 0; s < 2; ++s) {
    Span second = plan.stages[s].spans[0];
    second.chunk = 1;
    second.units = {s == 0 ? 7 : 4, s == 0 ? 10 : 7};
    plan.stages[s].spans.push_back(second);
  }
  EXPECT_EQ(describe(plan), "pp2 tp2 dp2 m1 zb-v layers=2/3 devices=0-7");
  EXPECT_EQ(parse_description("", describe(plan)), plan);
}

TEST(Describe, ShowsSharesAsARatio) {
  Plan plan = plan_of({8, 8}, 4);
  plan.stages[0].shares = {3, 1};
  EXPECT_EQ(describe(plan), "pp2 tp2 dp2 m1 1f1b layers=8 shares=3:1,equal devices=0-7");
}

TEST(Describe, EveryValidPlanReadsBackAsItself) {
  samples::RandomPlans random(2);
  for (int i = 0; i < 10000; ++i) {
    const Plan plan = random.next().plan;
    const std::string text = describe(plan);
    const Plan again = parse_description("", text);
    ASSERT_EQ(again, plan) << text;
    ASSERT_EQ(describe(again), text);
  }
}

TEST(Describe, WordsMayComeInAnyOrderAndDegreesMayBeLeftOut) {
  EXPECT_EQ(parse_description("", "devices=0-7 layers=8,8 tp2,2 dp2 pp2"), plan_of({8, 8}, 4));
  EXPECT_EQ(describe(parse_description("", "pp1 layers=4 devices=3")),
            "pp1 tp1 dp1 m1 1f1b layers=4 devices=3");
}

TEST(Describe, SaysWhatCannotBeRead) {
  const std::string good = "pp2 tp2 dp2 layers=8 devices=0-7";
  ASSERT_EQ(complaint(good), "");
  const std::pair<std::string, std::string> table[] = {
      {"", "'pp' is missing"},
      {"pp2 layers=8", "'devices' is missing"},
      {good + " tp4", "'tp' is there twice"},
      {good + " gpipe 1f1b", "a second schedule, '1f1b'"},
      {good + " fast", "'fast' is not a word of a plan's description"},
      {good + " sp1", "'sp1' is not a word of a plan's description"},
      {good + " m=4", "'m=4' is not a word of a plan's description"},
      {good + " m0", "'0' of 'm' must be a whole number from 1 to 1000000000"},
      {good + " m4x", "'4x' of 'm' must be a whole number from 1 to 1000000000"},
      {good + " m99999999999", "'99999999999' of 'm' must be a whole number from 1 to 1000000000"},
      {good + " zero4", "'4' of 'zero' must be a whole number from 0 to 3"},
      {good + " offload=nan", "'nan' of 'offload' must be a number from 0 to 1"},
      {good + " offload=2", "'2' of 'offload' must be a number from 0 to 1"},
      {good + " recompute=some", "unknown recompute 'some'"},
      {good + " shares=[3:1", "'[3:1' of 'shares' does not fold out"},
      {good + " shares=[3:1]", "'[3:1]' of 'shares' does not fold out"},
      {good + " shares=[3:1]*0", "'[3:1]*0' of 'shares' does not fold out"},
      {good + " shares=[3:1]*2x", "'[3:1]*2x' of 'shares' does not fold out"},
      {good + " recompute=full+none", "'recompute' does not have the spans of 'layers' in stage 0"},
      {good + " shares=3:", "'' of 'shares' must be a whole number from 1 to 1000000"},
      {"pp2 layers=8,8,8 devices=0-1", "'layers' has 3 entries for 2 stages"},
      {"pp2 layers=8,0 devices=0-1", "'0' of 'layers' must be a whole number from 1 to 10000000"},
      {"pp2 layers=9000000 devices=0-1", "more than 10000000 layers"},
      {"pp2 layers=8 devices=0-3", "'devices' are 4, the stages need 2"},
      {"pp2 layers=8 devices=0|1|2", "'devices' has 3 parts for 2 stages"},
      {"pp2 layers=8 devices=1-0", "'0' of 'devices' must be a whole number from 1 to 999999"},
      {"pp1 layers=8 devices=0-999999,0", "more than 1000000 devices"},
  };
  for (const auto& [text, expected] : table) EXPECT_EQ(complaint(text), "--plan: " + expected);
}

TEST(Describe, AbsurdTextIsRefusedAtOnce) {
  std::string many = "1";
  for (int i = 0; i < 1'000'000; ++i) many += "/1";
  EXPECT_EQ(complaint("pp1 devices=0 layers=" + many), "--plan: more than 1000 chunks");
  EXPECT_EQ(complaint("pp100000 devices=0 layers=" + many), "--plan: 'layers' is too long");
  EXPECT_EQ(complaint(std::string(std::size_t{17} << 20, 'x')),
            "--plan: is too long to describe a plan");
}

TEST(Describe, BrokenTextNeverCrashes) {
  samples::RandomPlans random(3);
  for (int i = 0; i < 5000; ++i) {
    std::string text = describe(random.next().plan);
    for (int flips = 1 + random.below(3); flips > 0; --flips)
      text[random.below(static_cast<int>(text.size()))] = static_cast<char>(random.below(256));
    complaint(text);
    complaint(text.substr(0, random.below(static_cast<int>(text.size()))));
  }
}

}  // namespace
}  // namespace plait
