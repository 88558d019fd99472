// The use cases that take a saved plan.

#include <gtest/gtest.h>

#include <algorithm>

#include "app/plan/sample_requests.h"
#include "app/saved/check.h"
#include "app/saved/diff.h"
#include "app/saved/estimate.h"
#include "app/saved/explain.h"
#include "app/saved/neighbours.h"
#include "plan/sample_plans.h"

namespace plait {
namespace {

using samples::small_plan_file;

TEST(CheckAnswer, ASearchedPlanIsValidAndFits) {
  const CheckAnswer checked = answer(CheckRequest{"plan.json", small_plan_file()});
  EXPECT_TRUE(checked.valid());
  EXPECT_TRUE(checked.fits());
}

// Megatron-Core trains adapters, which no flag of Megatron-LM's script adds.
TEST(CheckAnswer, AProgramMayRunWhatNoFileSays) {
  const auto unwritten = [](const PlanFile& file) {
    const CheckAnswer checked = answer(CheckRequest{"plan.json", file});
    const auto megatron = std::ranges::find(checked.runners, "megatron", &Runner::target);
    EXPECT_EQ(megatron->why_not, "");
    return megatron->not_written;
  };
  PlanFile file = small_plan_file();
  EXPECT_EQ(unwritten(file), "");
  file.problem.job.adapters = true;
  file.problem.job.adapter_rank = 8;
  EXPECT_NE(unwritten(file).find("adds no adapters"), std::string::npos);
}

TEST(CheckAnswer, AnInvalidPlanIsNotCosted) {
  PlanFile file = small_plan_file();
  file.plan.micro_batches = 3;  // of 8 samples
  const CheckAnswer checked = answer(CheckRequest{"plan.json", file});
  EXPECT_FALSE(checked.valid());
  EXPECT_FALSE(checked.cost);
  EXPECT_FALSE(checked.fits());
}

TEST(CheckAnswer, APlanMayBeValidAndTooLarge) {
  PlanFile file = small_plan_file();
  for (DeviceType& type : file.problem.cluster.device_types) type.memory = Bytes(0x1p30);
  const CheckAnswer checked = answer(CheckRequest{"plan.json", file});
  EXPECT_TRUE(checked.valid());
  EXPECT_FALSE(checked.fits());
}

TEST(EstimateAnswer, IsWhatTheSearchPredicted) {
  const PlanAnswer found = answer(samples::small_plan_request(), {});
  const RankedPlan& best = found.result.plans.front();
  const EstimateAnswer estimated =
      answer(EstimateRequest{"plan.json", {found.problem, best.plan}, false});
  EXPECT_EQ(estimated.simulated.step, best.cost.step);
  EXPECT_EQ(static_cast<int>(estimated.simulated.stages.size()), best.plan.stage_count());
  EXPECT_FALSE(estimated.trace);
  EXPECT_EQ(reason(estimated), "");
}

TEST(EstimateAnswer, ATraceIsMadeOnRequest) {
  const EstimateAnswer estimated = answer(EstimateRequest{"plan.json", small_plan_file(), true});
  ASSERT_TRUE(estimated.trace);
  EXPECT_NE(estimated.trace->find("\"F0\""), std::string::npos);  // the first forward pass
}

// 2 stages x 2 passes x 2 million micro-batches are 8 million events.
TEST(EstimateAnswer, ATraceThatNoViewerOpensIsRefused) {
  PlanFile file{samples::sample_problem(), samples::sample_plan()};
  file.problem.job.global_batch = 8'000'000;
  file.plan.micro_batches = 2'000'000;
  EXPECT_TRUE(samples::complaint([&] {
                answer(EstimateRequest{"plan.json", file, true});
              }).starts_with("`trace`: would have 8e+06 events"));
}

TEST(Explanation, TheSharesAddUpToTheStep) {
  const Explanation explained = answer(ExplainRequest{.file = small_plan_file()}, {});
  const StepShares shares = shares_of(explained.subject);
  const Seconds sum = shares.compute + shares.recompute + shares.communication + shares.bubble +
                      shares.after_pipeline;
  EXPECT_NEAR(sum.value, explained.subject.cost.step.value, 1e-9);
}

// GPT-2's head uses the embedding's table, which two stages then hold: over a slow network its
// gradients take most of the end of a step.
TEST(Explanation, SaysThatTheSharedTableTakesTheEnd) {
  PlanRequest request = samples::small_plan_request();
  request.source.cluster = "2xA10:1/1Gbps";
  request.search.pins.pipeline = 2;
  PlanAnswer found = answer(request, {});
  ASSERT_TRUE(found.found());
  const PlanFile file{std::move(found.problem), std::move(found.result.plans.front().plan)};
  const std::string text = as_text(answer(ExplainRequest{.file = file}, {}), {});
  EXPECT_NE(text.find("to sum the gradients of the table"), std::string::npos) << text;
}

TEST(SavedPlan, AnswersTellWhoMadeTheFile) {
  PlanFile file = small_plan_file();
  EXPECT_EQ(to_json(answer(CheckRequest{"plan.json", file})).find("made_by"), std::string::npos);
  file.made_by = "plait 9.9.9+abc";
  for (const std::string& json : {to_json(answer(CheckRequest{"plan.json", file})),
                                  to_json(answer(ExplainRequest{.file = file}, {}))})
    EXPECT_NE(json.find("\"made_by\": \"plait 9.9.9+abc\""), std::string::npos) << json;
}

TEST(Explanation, NothingIsFasterThanTheBestPlan) {
  const Explanation explained = answer(ExplainRequest{.file = small_plan_file()}, {});
  ASSERT_FALSE(explained.search.plans.empty());
  EXPECT_EQ(explained.search.plans.front().cost.step, explained.subject.cost.step);
  ASSERT_FALSE(explained.alternatives.empty());
  for (std::size_t i = 1; i < explained.alternatives.size(); ++i) {
    const Estimate& before = explained.alternatives[i - 1].plan.cost;
    const Estimate& now = explained.alternatives[i].plan.cost;
    EXPECT_GE(std::pair(!now.fits, now.step), std::pair(!before.fits, before.step));
  }
}

TEST(PlanDiff, StepsOfDifferentSizesAreComparedByToken) {
  const PlanFile small = small_plan_file();
  PlanRequest request = samples::small_plan_request();
  request.source.job.global_batch = 64;  // 8 in the other
  PlanAnswer found = answer(request, {});
  const PlanFile large{std::move(found.problem), std::move(found.result.plans.front().plan)};
  const DiffAnswer same = answer(DiffRequest{{"a.json", "b.json"}, {small, small}});
  EXPECT_TRUE(same.same_work());
  EXPECT_EQ(same.change(), 0);
  const DiffAnswer diff = answer(DiffRequest{{"a.json", "b.json"}, {small, large}});
  EXPECT_FALSE(diff.same_work());
  EXPECT_NEAR(diff.change() + 1, diff.costs[1].step / diff.costs[0].step / 8, 1e-12);
  EXPECT_LT(diff.change(), 0);  // a larger batch hides more
  EXPECT_EQ(diff.other_problem, std::vector<std::string>{"the global batch"});
  const std::string text = as_text(diff, {});
  EXPECT_NE(text.find("faster than a.json for a token"), std::string::npos) << text;
  EXPECT_NE(text.find("tokens/s"), std::string::npos);
}

TEST(PlanDiff, NamesWhatDiffersInTheJob) {
  const PlanFile file = small_plan_file();
  PlanFile other = file;
  other.problem.job.framework.traits.data_exposed = 1;
  const auto differing = [&] {
    return answer(DiffRequest{{"a.json", "b.json"}, {file, other}}).other_problem;
  };
  EXPECT_EQ(differing(), std::vector<std::string>{"what is overlapped"});
  other.problem.job.optimizer = Optimizer::sgd;
  EXPECT_EQ(differing(), (std::vector<std::string>{"the optimizer", "what is overlapped"}));
  other = file;
  other.problem.job.logit_bytes = 4;
  EXPECT_EQ(differing(), std::vector<std::string>{"the job"});
}

TEST(Neighbours, DifferInOneThing) {
  const PlanFile file = small_plan_file();
  const std::vector<Neighbour> all = neighbours_of(file.problem, file.plan);
  EXPECT_FALSE(all.empty());
  for (const Neighbour& neighbour : all) {
    EXPECT_NE(neighbour.plan, file.plan) << neighbour.change;
    EXPECT_EQ(neighbour.plan.stage_count(), file.plan.stage_count()) << neighbour.change;
  }
}

}  // namespace
}  // namespace plait
