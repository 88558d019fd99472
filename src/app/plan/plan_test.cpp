#include "app/plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "app/plan/compare.h"
#include "app/plan/sample_requests.h"
#include "export/exporter.h"
#include "plan/check.h"

namespace plait {
namespace {

using samples::complaint;
using samples::small_plan_request;

TEST(PlanAnswer, HasTheBestPlansFirst) {
  const PlanAnswer found = answer(small_plan_request(), {});
  ASSERT_EQ(found.result.plans.size(), 3u);
  for (const RankedPlan& ranked : found.result.plans) {
    EXPECT_TRUE(check_plan(found.problem, ranked.plan).empty());
    EXPECT_GE(ranked.cost.step, found.result.plans.front().cost.step);
  }
  ASSERT_TRUE(found.gap());
  EXPECT_GE(*found.gap(), 0);
  EXPECT_EQ(reason(found), "");
  EXPECT_FALSE(found.no_plan || found.exported || found.interrupted);
}

TEST(PlanAnswer, TellsTheSessionOfProgressAndWarnings) {
  PlanRequest request = small_plan_request();
  request.source.cluster = "1xT4:4";  // without bf16
  int warned = 0;
  Seconds best(HUGE_VAL);
  Session session;
  session.on_warning = [&](const std::string&) { ++warned; };
  session.on_improvement = [&](Seconds step) { best = std::min(best, step); };
  const PlanAnswer found = answer(request, session);
  EXPECT_EQ(warned, 1);
  EXPECT_EQ(found.warnings.size(), 1u);
  EXPECT_LT(best, Seconds(HUGE_VAL));
}

TEST(PlanAnswer, AStopEndsTheSearch) {
  std::stop_source stop;
  stop.request_stop();
  Session session;
  session.stop = stop.get_token();
  const PlanAnswer found = answer(small_plan_request(), session);
  EXPECT_TRUE(found.interrupted);
  EXPECT_TRUE(found.result.cut_short);
}

TEST(PlanAnswer, HopelessProblemsAreNotSearched) {
  PlanRequest request = small_plan_request();
  request.source.model = "llama-2-70b";  // 69 billion parameters of 18 bytes; 4 x 24 GiB
  const PlanAnswer none = answer(request, {});
  EXPECT_FALSE(none.found());
  ASSERT_TRUE(none.no_plan);
  EXPECT_TRUE(none.no_plan->hopeless);
  EXPECT_EQ(none.result.evaluations, 0);
  // What takes the memory is shown for the plan that comes nearest.
  ASSERT_TRUE(none.no_plan->nearest);
  EXPECT_FALSE(none.no_plan->nearest->cost.fits);
  EXPECT_NE(nearest_text(none, {}).find("optimizer"), std::string::npos);
  EXPECT_TRUE(reason(none).starts_with("nothing fits: weights, gradients"));
}

TEST(PlanAnswer, AMemoryLimitHoldsAndSaysWhatIsMissing) {
  PlanRequest request = small_plan_request();
  request.source.memory.limit = Bytes(4e9);
  const PlanAnswer found = answer(request, {});
  ASSERT_TRUE(found.found());
  for (const RankedPlan& ranked : found.result.plans)
    EXPECT_LE(ranked.cost.peak_memory(), Bytes(4e9));
  request.source.memory.limit = Bytes(1e8);  // 124 million parameters of 18 bytes on 4 devices
  const PlanAnswer none = answer(request, {});
  EXPECT_FALSE(none.found());
  EXPECT_NE(reason(none).find("under the limit"), std::string::npos) << reason(none);
}

TEST(PlanAnswer, TheNumberOfClustersThatAreEnoughIsExact) {
  PlanRequest request = small_plan_request();
  request.source.model = "llama-2-7b";  // 113 GiB of state on 2 x 22 GiB
  request.source.cluster = "1xA10:2";
  const PlanAnswer none = answer(request, {});
  ASSERT_TRUE(none.no_plan);
  int times = 0;
  for (const Remedy& remedy : none.no_plan->remedies) times = std::max(times, remedy.cluster_times);
  ASSERT_GT(times, 2);
  const auto with = [&](int count) {
    PlanRequest larger = request;
    larger.source.cluster = std::to_string(count) + "xA10:2";
    return answer(larger, {}).found();
  };
  EXPECT_TRUE(with(times));
  EXPECT_FALSE(with(times - 1));
}

TEST(PlanAnswer, RemediesNameThePinsThatAreInTheWay) {
  PlanRequest request = small_plan_request();
  request.source.model = "gpt2-xl";  // 1.6 billion parameters of 18 bytes are 26 GiB, over 22
  request.source.job.global_batch = 4;
  request.search.pins.tensor = 1;
  request.search.pins.pipeline = 1;
  request.search.pins.zero = ZeroStage::off;
  const PlanAnswer none = answer(request, {});
  ASSERT_TRUE(none.no_plan);
  EXPECT_FALSE(none.no_plan->hopeless);
  const auto drops = [&](Dimension dimension) {
    return std::ranges::any_of(none.no_plan->remedies, [&](const Remedy& remedy) {
      return remedy.without == std::vector<Dimension>{dimension};
    });
  };
  EXPECT_TRUE(drops(Dimension::pipeline));
  EXPECT_NE(reason(none).find("without `pipeline` 1"), std::string::npos);
}

// Adapters are planned for what plait can write files for; what is faster with more is told beside
// it.
TEST(PlanAnswer, AdaptersAreOfPyTorchWhereNoProgramIsNamed) {
  PlanRequest request = small_plan_request();
  request.source.job.adapters = true;
  request.source.job.adapter_rank = 16;
  const PlanAnswer open = answer(request, {});
  ASSERT_TRUE(open.found());
  EXPECT_EQ(open.options.target.name, "fsdp");
  EXPECT_EQ(open.problem.job.framework.name, "fsdp");
  const Plan& plan = open.result.plans.front().plan;
  EXPECT_EQ(exporter_named("fsdp")->run(open.problem, plan).refusal, "");
  request.source.framework = "megatron";
  const PlanAnswer bridge = answer(request, {});
  EXPECT_EQ(bridge.options.target.name, "megatron");
  ASSERT_TRUE(bridge.found());
  EXPECT_TRUE(bridge.other_ways.empty());
  const double step = open.result.plans.front().cost.step.value;
  const double theirs = bridge.result.plans.front().cost.step.value;
  ASSERT_EQ(open.other_ways.size(), theirs < .99 * step ? 1u : 0u);
  for (const OtherWay& way : open.other_ways) {
    EXPECT_EQ(way.request, "`framework` megatron");
    EXPECT_NEAR(way.plan.cost.step.value, theirs, .01 * theirs);
  }
  request.source.framework = "";
  request.search.pins.tensor = 2;  // which PyTorch's replicas do not have
  EXPECT_EQ(answer(request, {}).options.target.name, "megatron");
  request.search.pins.tensor.reset();
  request.source.runs_on = "deepspeed";  // a program is named
  EXPECT_EQ(answer(request, {}).options.target.name, "deepspeed");
}

// Of a program without degrees, what is run today is its batch, what is cut and what is recomputed.
TEST(PlanAnswer, SettingsOfReplicasAreJudged) {
  PlanRequest request = small_plan_request();
  request.source.framework = "fsdp";
  request.search.pins.micro_batch = 1;
  request.search.pins.recompute = Recompute::full;
  const PlanAnswer found = answer(request, {});
  ASSERT_TRUE(found.found());
  ASSERT_EQ(found.other_ways.size(), 1u);
  EXPECT_EQ(found.other_ways.front().request, "without `micro_batch` `recompute`");
  EXPECT_LT(found.other_ways.front().plan.cost.step, found.result.plans.front().cost.step);
  // What the batch follows from is said when that is left out.
  PlanRequest by_micro_batches = request;
  by_micro_batches.source.job.global_batch = 0;
  by_micro_batches.search.pins.micro_batches = 2;
  by_micro_batches.search.pins.data = 4;
  const PlanAnswer followed = answer(by_micro_batches, {});
  ASSERT_EQ(followed.other_ways.size(), 1u);
  EXPECT_TRUE(followed.other_ways.front().request.ends_with(", with `global_batch` 8"))
      << followed.other_ways.front().request;
  request.search.pins.recompute.reset();  // a batch alone says little
  EXPECT_TRUE(answer(request, {}).other_ways.empty());
}

// NCCL and RCCL do not sum with each other.
TEST(PlanAnswer, DevicesOfTwoMakersAreRefusedUnlessAnyProgramWillDo) {
  PlanRequest request = small_plan_request();
  request.source.cluster = "1xA100-80GB:2+1xMI210:2";
  const std::string words = complaint([&] { answer(request, {}); });
  EXPECT_NE(words.find("A100-80GB has NCCL and MI210 has RCCL"), std::string::npos) << words;
  request.source.runs_on = "any";
  EXPECT_TRUE(answer(request, {}).found());
}

TEST(PlanAnswer, APriceIsAskedOverAllMixesOfNodes) {
  PlanRequest request = small_plan_request();
  request.source.cluster = "2xg5.24xlarge";
  request.objective.metric = Metric::cost;
  request.objective.steps = 100;
  const PlanAnswer found = answer(request, {});
  EXPECT_EQ(found.mixes, 2);  // one node, or both
  ASSERT_TRUE(found.length);
  EXPECT_EQ(found.length->steps, 100);
  request.objective = {.budget = Usd(1e-6), .steps = 100};
  const PlanAnswer dear = answer(request, {});
  EXPECT_FALSE(dear.found());
  EXPECT_NE(dear.missed, "");
  EXPECT_EQ(reason(dear), dear.missed);
}

TEST(PlanAnswer, WordsOfOtherProgramsNarrowTheSearch) {
  PlanRequest request = small_plan_request();
  request.format = "amp";
  request.planner = "amp";
  const PlanAnswer found = answer(request, {});
  ASSERT_TRUE(found.exported);
  EXPECT_EQ(found.exported->format, "amp");
  EXPECT_EQ(found.exported->written, 3);
  EXPECT_EQ(found.options.pins.zero, ZeroStage::off);
  request.format = "word";
  EXPECT_TRUE(complaint([&] { answer(request, {}); }).starts_with("`format`: must be one of "));
}

TEST(PlanAnswer, MetisFormulaNeedsItsProfile) {
  PlanRequest request = small_plan_request();
  request.cost_model = "metis";
  EXPECT_EQ(complaint([&] { answer(request, {}); }),
            "`cost_model`: metis needs `profile` with a directory of Metis' measurements");
  request.planner = "amp";
  EXPECT_EQ(complaint([&] { answer(request, {}); }),
            "`cost_model`: metis has a search of its own; leave `planner` out");
}

TEST(CompareAnswer, AutoIsBehindNobody) {
  const CompareAnswer compared = answer(CompareRequest{samples::small_request()}, {});
  // 14 units are too many for the exhaustive planner.
  ASSERT_EQ(compared.planners.size(), 5u);
  EXPECT_TRUE(compared.found());
  EXPECT_EQ(compared.behind_auto(compared.planners[0]), 0);
  for (const PlannerResult& entry : compared.planners)
    EXPECT_GE(compared.behind_auto(entry).value_or(0), -1e-9) << entry.planner;
}

}  // namespace
}  // namespace plait
