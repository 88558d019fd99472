#include "export/exporter.h"

#include <gtest/gtest.h>

#include "plan/sample_plans.h"

namespace plait {
namespace {

RankedPlan sample() {
  RankedPlan ranked{samples::sample_plan(), {}};
  ranked.cost.step = Seconds(0.5);
  ranked.cost.stages.resize(2);
  return ranked;
}

// One node with 8 equal devices, all of which the sample plan uses.
Problem one_node() {
  Problem problem = samples::sample_problem();
  problem.cluster = samples::sample_cluster(1, 1);
  return problem;
}

TEST(Exporters, AreFoundByName) {
  for (const Exporter& exporter : exporters()) {
    EXPECT_EQ(exporter_named(exporter.name), &exporter);
    EXPECT_FALSE(exporter.summary.empty());
  }
  EXPECT_EQ(exporter_named("word"), nullptr);
  EXPECT_EQ(exporter_names().size(), exporters().size());
}

// Stages of 4 devices, (dp 2, tp 2) each, 4 micro-batches, bounds 0, 4, 8; 0.5 s are 500 ms.
TEST(Exporters, MetisCountsMilliseconds) {
  const ExportedPlans out = export_plans(*exporter_named("metis"), one_node(), {{sample()}});
  EXPECT_EQ(out.written, 1);
  EXPECT_TRUE(out.text.ends_with(
      "1, 500, (<DeviceType.Fast: 'fast'>,), [4, 4], [(2, 2), (2, 2)], 4, [0, 4, 8]\n"))
      << out.text;
}

// AMP's embedding is two of its units and its head four: 8 units are 12, cut after 5.
TEST(Exporters, AmpCountsItsOwnUnits) {
  const ExportedPlans out = export_plans(*exporter_named("amp"), one_node(), {{sample()}});
  EXPECT_EQ(out.written, 1);
  EXPECT_NE(out.text.find("\n2,2,2,2,4,16,0-5-12,5-7,identity,0.5,"), std::string::npos)
      << out.text;
}

TEST(Exporters, ARefusalIsASentenceForThePlan) {
  RankedPlan recomputing = sample();
  recomputing.plan.stages[0].spans[0].recompute = Recompute::full;
  const std::vector<RankedPlan> plans{recomputing, sample()};
  const ExportedPlans out = export_plans(*exporter_named("metis"), one_node(), plans);
  EXPECT_EQ(out.written, 1);
  ASSERT_EQ(out.left_out.size(), 1u);
  EXPECT_EQ(out.left_out[0], "plan 1 has no row in the form of metis: it recomputes activations");
  // Ranks count the rows, not the plans.
  EXPECT_NE(out.text.find("\n1, 500,"), std::string::npos);
}

// A program without a heading takes one plan: the first that it has words for.
TEST(Exporters, ATextHasOnePlan) {
  const Exporter text{"text", "", "", [](const Problem&, const RankedPlan& ranked, int) {
                        return ranked.cost.step > Seconds(0.5) ? Exported{"", "it is slow"}
                                                               : Exported{"plan\n", ""};
                      }};
  std::vector<RankedPlan> plans(3, sample());
  plans[0].cost.step = Seconds(1);
  const ExportedPlans out = export_plans(text, one_node(), plans);
  EXPECT_EQ(out.text, "plan\n");
  EXPECT_EQ(out.written, 1);
  EXPECT_EQ(out.left_out, std::vector<std::string>{"plan 1 is not written for text: it is slow"});
}

TEST(Exporters, SearchesForThePapersAreNarrowedUnlessPinned) {
  Pins pins{.zero = ZeroStage::optimizer};
  exporter_named("amp")->narrow(pins);
  EXPECT_EQ(pins.zero, ZeroStage::optimizer);
  EXPECT_EQ(pins.recompute, Recompute::none);
  EXPECT_EQ(pins.schedule, Schedule::one_f_one_b);
  EXPECT_FALSE(pins.tensor);
}

// What a program's files have no words for is named.
TEST(Exporters, SettingsOfTheSoftwareAreSaidOrNamed) {
  Problem problem = one_node();
  Plan plan = sample().plan;
  const auto unsaid = [&](const char* name) {
    return unsaid_settings(*exporter_named(name), problem, plan);
  };
  for (const Exporter& exporter : exporters())
    EXPECT_TRUE(unsaid_settings(exporter, problem, plan).empty()) << exporter.name;
  problem.job.overlap = false;
  EXPECT_TRUE(unsaid("megatron").empty());
  EXPECT_EQ(unsaid("jax").size(), 1u);
  problem.job.reduce_bytes = 2;
  EXPECT_EQ(unsaid("megatron"), std::vector<std::string>{"gradients that are summed in 2 bytes, as "
                                                         "the prediction has it"});
  problem.job = {.global_batch = problem.job.global_batch, .zero_group = 1};
  plan.zero = ZeroStage::optimizer;
  EXPECT_TRUE(unsaid("deepspeed").empty());  // of one device nothing is cut
  for (Stage& stage : plan.stages)
    for (Span& span : stage.spans) span.tensor = 1, span.data = 4;
  problem.job.zero_group = 2;
  EXPECT_TRUE(unsaid("megatron").empty());
  EXPECT_EQ(unsaid("deepspeed"),
            std::vector<std::string>{
                "that states are cut over groups of 2 devices, as the prediction has it"});
}

TEST(Exporters, FasopKnowsTwoDeviceTypes) {
  const Exported none = exporter_named("fasop")->write(one_node(), sample(), 1);
  EXPECT_EQ(none.text, "");
  EXPECT_EQ(none.refusal, "FASOP knows A100 and A10, not Fast");
}

}  // namespace
}  // namespace plait
