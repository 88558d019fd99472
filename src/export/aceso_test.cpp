#include <gtest/gtest.h>

#include "cost/aceso_formula.h"
#include "export/exporter.h"
#include "io/format/json_reader.h"
#include "io/profile/aceso_models.h"
#include "io/profile/import_aceso.h"

namespace plait {
namespace {

// GPT 350M with 24 layers has 315 ops; here two stages, the second cut twice over two devices, with
// its last ops in another way.
RankedPlan two_stages() {
  std::vector<AcesoStage> stages(2);
  stages[0] = {{0, 100}, 1, std::vector<AcesoChoice>(100, {1, 1, 0, true})};
  stages[1] = {{100, 315}, 2, std::vector<AcesoChoice>(215, {2, 1, 0, false})};
  stages[1].choices.back() = {1, 2, 1, false};
  return {plan_of(stages, 8), {}};
}

Problem named(const std::string& name) {
  Problem problem;
  problem.model.name = name;
  problem.model.kinds.emplace_back();
  problem.model.units.assign(315, 0);
  problem.job.global_batch = 16;
  return problem;
}

TEST(AcesoExport, SaysEverythingThatItsRuntimeReads) {
  const Exporter& exporter = *exporter_named("aceso");
  const RankedPlan ranked = two_stages();
  const Exported out = exporter.write(named("gpt_350M"), ranked, 1);
  ASSERT_EQ(out.refusal, "");
  const JsonValue root = parse_json("out", out.text);
  EXPECT_EQ(root.at("model_name").text(), "gpt");
  EXPECT_EQ(root.at("model_size").text(), "350M");
  EXPECT_EQ(root.at("num_layers").integer(1, 100), 24);
  EXPECT_EQ(root.at("hidden_size").integer(1, 10000), 1024);
  EXPECT_EQ(root.at("micro_batch_size").integer(1, 100), 2);
  EXPECT_EQ(root.at("num_gpus").items()[1].integer(1, 10), 2);
  EXPECT_EQ(root.at("checkpoint_activations").items().size(), 2U);
  EXPECT_EQ(root.at("num_ops_in_each_stage").items()[0].integer(1, 1000), 100);
  EXPECT_EQ(root.at("model_parallel_size_of_each_op").items()[1].items().back().integer(1, 8), 1);
  EXPECT_EQ(root.at("data_parallel_size_of_each_op").items()[1].items().back().integer(1, 8), 2);
  EXPECT_EQ(root.at("algo_of_each_op").items()[1].items().back().integer(0, 8), 1);
  EXPECT_EQ(root.at("recompute_ops").items()[0].items()[99].integer(0, 1), 1);
  EXPECT_EQ(exporter.file_name(named("gpt_350M"), ranked), "gpt_350M_2stages_0.00s.json");
}

TEST(AcesoExport, RefusesWhatItsRuntimeDoesNotHave) {
  const Exporter& exporter = *exporter_named("aceso");
  RankedPlan ranked = two_stages();
  EXPECT_EQ(exporter.write(named("gpt2"), ranked, 1).refusal,
            "its model is not one of Aceso's; `model` aceso:gpt_1_3B and others are");
  ranked.plan.zero = ZeroStage::optimizer;
  EXPECT_EQ(exporter.write(named("gpt_350M"), ranked, 1).refusal, "it shards the optimizer");
  ranked.plan.zero = ZeroStage::off;
  ranked.plan.schedule = Schedule::gpipe;
  EXPECT_EQ(exporter.write(named("gpt_350M"), ranked, 1).refusal, "its schedule is not 1F1B");
}

}  // namespace
}  // namespace plait
