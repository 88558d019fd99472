#include "app/measured/validate.h"

#include <gtest/gtest.h>

#include "app/measured/import.h"
#include "app/plan/sample_requests.h"
#include "cost/engine.h"
#include "io/format/json_reader.h"
#include "io/format/test_folder.h"
#include "io/plan/plan_json.h"
#include "validation/sample_rows.h"

namespace plait {
namespace {

TEST(ValidateAnswer, EveryShippedRunIsPredictedOrRefused) {
  const ValidateAnswer compared = answer(ValidateRequest{});
  ASSERT_FALSE(compared.runs.empty());
  ASSERT_EQ(compared.predictions.size(), compared.runs.size());
  int rows = 0;
  for (const Accuracy& accuracy : compared.accuracy) rows += accuracy.rows;
  EXPECT_EQ(rows, static_cast<int>(compared.runs.size()));
  for (std::size_t i = 0; i < compared.runs.size(); ++i)
    EXPECT_EQ(compared.predictions[i].made, compared.runs[i].refusal.empty()) << i;
}

TEST(ValidateAnswer, ShortStepsAndOtherGradesAreLeftOut) {
  const ValidateAnswer all = answer(ValidateRequest{});
  const ValidateAnswer some = answer(ValidateRequest{.grades = "A", .least_step = Seconds(1)});
  EXPECT_LT(some.runs.size(), all.runs.size());
  for (const MeasuredRun& run : some.runs) {
    EXPECT_TRUE(run.grade.empty() || run.grade == "A");
    EXPECT_TRUE(!run.step || *run.step >= Seconds(1));
  }
}

TEST(ValidateAnswer, RunsMayBeGroupedByDevice) {
  const ValidateAnswer compared = answer(ValidateRequest{.by = RunGrouping::device});
  EXPECT_EQ(compared.accuracy.front().name, compared.runs.front().device);
}

// What was read from a row is all that its prediction depends on: the saved plan has the same step.
TEST(ValidateAnswer, TheSavedPlanOfEveryShippedRunHasTheSameStep) {
  const ValidateAnswer compared = answer(ValidateRequest{});
  std::vector<RowPlan> plans;
  for_each_row_plan(compared, [&](const RowPlan& plan) { plans.push_back(plan); });
  std::size_t next = 0;
  for (std::size_t i = 0; i < compared.runs.size(); ++i) {
    if (!compared.predictions[i].made) continue;
    const RowPlan& saved = plans.at(next++);
    const PlanFile file = plan_file_from_json(parse_json(saved.name, saved.text));
    const Seconds step = CostEngine(file.problem).simulate(file.plan).step;
    EXPECT_DOUBLE_EQ(step.value, compared.predictions[i].step.value) << saved.name;
  }
  EXPECT_EQ(next, plans.size());
}

TEST(ValidateAnswer, PlansOfRowsOfOneNameAreFilesOfTheirOwn) {
  const samples::TestFolder folder;
  const std::string row = samples::table_of(samples::gpt_row());
  const std::string line = row.substr(row.find('\n') + 1);
  folder.write("thrice.csv", row + line + line);
  std::vector<std::string> names;
  for_each_row_plan(answer(ValidateRequest{.runs = folder.path("thrice.csv")}),
                    [&](const RowPlan& plan) { names.push_back(plan.name); });
  ASSERT_EQ(names.size(), 3u);
  EXPECT_EQ(names[1], names[0] + "-2");
  EXPECT_EQ(names[2], names[0] + "-3");
}

TEST(ValidateAnswer, TheTableEndsWithTheMeanOverSources) {
  const ValidateAnswer compared = answer(ValidateRequest{});
  const MeanOverSources mean = mean_over(compared.accuracy);
  const std::string text = as_table(compared, Style{});
  EXPECT_NE(text.find("mean over " + std::to_string(mean.sources)), text.npos);
  EXPECT_NE(text.find("Furthest off"), text.npos);
}

TEST(ImportAnswer, AnAcesoPlanNeedsItsTablesAndItsCluster) {
  ImportRequest request{.path = "plan.json", .from = "aceso-plan"};
  const auto words = [&] { return samples::complaint([&] { answer(request, {}); }); };
  EXPECT_EQ(words(), "`database`: is needed: the directory with Aceso's tables of ops");
  request.database = "tables";
  EXPECT_TRUE(words().starts_with("`cluster`: is needed"));
}

TEST(ImportAnswer, CollectivesOfNcclTestsBecomeCurves) {
  const samples::TestFolder folder;
  folder.write("all_reduce_perf.txt",
               "# nThread 1 nGpus 2 minBytes 1024 maxBytes 2048\n"
               "#\n# Using devices\n"
               "#  Rank  0 Group  0 Pid 1 on host device  0 [0x00] NVIDIA A100-SXM4-80GB\n"
               "#  Rank  1 Group  0 Pid 1 on host device  1 [0x01] NVIDIA A100-SXM4-80GB\n"
               "#\n"
               "#       size         count      type   redop    root     time   algbw   busbw\n"
               "        1024           256     float     sum      -1    10.00    0.10    0.10\n"
               "        2048           512     float     sum      -1    12.00    0.17    0.17\n");
  const ImportAnswer imported =
      answer(ImportRequest{.path = folder.path("all_reduce_perf.txt"), .from = "nccl-tests"}, {});
  ASSERT_TRUE(imported.profile);
  EXPECT_FALSE(imported.plan);
  EXPECT_EQ(imported.profile->collectives.size(), 1u);
}

}  // namespace
}  // namespace plait
