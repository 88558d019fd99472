#include "validation/validation.h"

#include <gtest/gtest.h>

#include <cmath>

namespace plait {
namespace {

MeasuredRun run(const std::string& id, double step, const std::string& job = "j") {
  MeasuredRun out{.id = id, .source = "s", .grade = "A", .device = "d", .job = job};
  out.step = Seconds(step);
  return out;
}

RunPrediction predicted(double step) { return {.made = true, .step = Seconds(step)}; }

TEST(Spearman, IsPearsonsCorrelationOfRanks) {
  EXPECT_DOUBLE_EQ(*spearman({1, 2, 3, 4}, {10, 20, 30, 40}), 1);
  EXPECT_DOUBLE_EQ(*spearman({1, 2, 3, 4}, {4, 3, 2, 1}), -1);
  // Ranks 0 1 2 3 and 1 0 2 3: 1 - 6 * (1 + 1) / (4 * 15) = 0.8.
  EXPECT_DOUBLE_EQ(*spearman({1, 2, 3, 4}, {2, 1, 3, 4}), 0.8);
  // A tie takes the mean rank: 0.5 0.5 2 against 0 1 2. Covariance 0.5 + 0 + 1 = 1.5, variances
  // 1.5 and 2: 1.5 / sqrt(3).
  EXPECT_NEAR(*spearman({5, 5, 6}, {1, 2, 3}), 1.5 / std::sqrt(3.0), 1e-12);
}

TEST(Spearman, IsNotGivenForTooFewOrConstantPoints) {
  EXPECT_FALSE(spearman({1, 2}, {1, 2}));
  EXPECT_FALSE(spearman({1, 1, 1}, {1, 2, 3}));
}

TEST(Regret, IsTheMeasuredTimeOfThePlanThatIsPredictedBest) {
  // Predicted best is the third, measured 12; the least measured is 10.
  EXPECT_DOUBLE_EQ(regret({2, 3, 1}, {10, 11, 12}, 1), 1.2);
  // Among the best two by prediction (third, first) is the measured best.
  EXPECT_DOUBLE_EQ(regret({2, 3, 1}, {10, 11, 12}, 2), 1);
  EXPECT_DOUBLE_EQ(regret({2, 3, 1}, {10, 11, 12}, 5), 1);
}

TEST(Regret, TakesTheMeanOfPlansThatArePredictedEqual) {
  EXPECT_DOUBLE_EQ(regret({1, 1, 2}, {10, 14, 11}, 1), 1.2);
}

TEST(Accuracy, CountsErrorsOfEachSource) {
  // Errors +10 %, -20 %, +30 %: mean size 20 %, median 20 %, bias 20/3 %.
  std::vector<MeasuredRun> runs{run("1", 10), run("2", 10), run("3", 10)};
  runs.push_back(run("4", 1));
  runs[3].source = "other";
  const std::vector<Accuracy> all = accuracy_by(
      RunGrouping::source, runs, {predicted(11), predicted(8), predicted(13), predicted(2)});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "s");
  EXPECT_EQ(all[0].rows, 3);
  EXPECT_EQ(all[0].predicted, 3);
  EXPECT_EQ(all[0].timed, 3);
  EXPECT_NEAR(*all[0].mape, 0.2, 1e-12);
  EXPECT_NEAR(*all[0].median_ape, 0.2, 1e-12);
  EXPECT_NEAR(*all[0].bias, 0.2 / 3, 1e-12);
  EXPECT_EQ(all[0].worst_row, "3");
  EXPECT_NEAR(*all[0].worst_error, 0.3, 1e-12);
  EXPECT_NEAR(all[0].mape_by_grade.at("A"), 0.2, 1e-12);
  EXPECT_NEAR(*all[1].mape, 1, 1e-12);
  EXPECT_FALSE(all[1].spearman);
}

TEST(Accuracy, NamesWhyRowsAreRefused) {
  std::vector<MeasuredRun> runs{run("1", 10), run("2", 10)};
  runs[1].refusal = "tp is not stated";
  const std::vector<Accuracy> all =
      accuracy_by(RunGrouping::source, runs, {predicted(10), RunPrediction{}});
  EXPECT_EQ(all[0].predicted, 1);
  EXPECT_EQ(all[0].refused(), 1);
  EXPECT_EQ(all[0].refusals.at("tp is not stated"), 1);
}

TEST(Accuracy, TakesRegretFromJobsOfThreeRowsOrMore) {
  // Job a: predicted best is measured 12 against 10. Job b has two rows only.
  const std::vector<MeasuredRun> runs{run("1", 10, "a"), run("2", 11, "a"), run("3", 12, "a"),
                                      run("4", 1, "b"), run("5", 9, "b")};
  const Accuracy a =
      accuracy_by(RunGrouping::device, runs,
                  {predicted(2), predicted(3), predicted(1), predicted(9), predicted(1)})[0];
  EXPECT_EQ(a.name, "d");
  EXPECT_EQ(a.jobs, 1);
  EXPECT_DOUBLE_EQ(*a.top1_regret, 1.2);
  EXPECT_DOUBLE_EQ(*a.top1_regret_mean, 1.2);
  EXPECT_DOUBLE_EQ(*a.top5_regret, 1);
}

TEST(Accuracy, ClassifiesRunsThatFailed) {
  std::vector<MeasuredRun> runs{run("1", 1), run("2", 1), run("3", 1)};
  runs[0].failed = runs[1].failed = true;
  runs[0].step = runs[1].step = std::nullopt;
  std::vector<RunPrediction> predictions(3, predicted(1));
  predictions[0].fits = false;
  predictions[2].fits = false;
  const Accuracy a = accuracy_by(RunGrouping::source, runs, predictions)[0];
  EXPECT_EQ(a.failed_not_fitting, 1);
  EXPECT_EQ(a.failed_fitting, 1);
  EXPECT_EQ(a.ran_not_fitting, 1);
  EXPECT_EQ(a.timed, 1);
}

TEST(Accuracy, PutsAnotherPredictorBesideOnItsRows) {
  // The other errs by 50 % on the first row, where plait errs by 10 %; it says nothing of the
  // second.
  std::vector<MeasuredRun> runs{run("1", 10), run("2", 10)};
  runs[0].others_step = Seconds(15);
  runs[0].other = "theirs";
  const Accuracy a = accuracy_by(RunGrouping::source, runs, {predicted(11), predicted(13)})[0];
  EXPECT_EQ(a.other, "theirs");
  EXPECT_EQ(a.with_other, 1);
  EXPECT_NEAR(*a.others_mape, 0.5, 1e-12);
  EXPECT_NEAR(*a.mape_beside_other, 0.1, 1e-12);
}

TEST(Accuracy, ComparesMemoryWhereItIsStated) {
  std::vector<MeasuredRun> runs{run("1", 1), run("2", 1)};
  runs[0].memory = Bytes(100);
  std::vector<RunPrediction> predictions(2, predicted(1));
  predictions[0].memory = Bytes(90);
  const Accuracy a = accuracy_by(RunGrouping::source, runs, predictions)[0];
  EXPECT_EQ(a.with_memory, 1);
  EXPECT_NEAR(*a.memory_mape, 0.1, 1e-12);
  EXPECT_NEAR(*a.memory_bias, -0.1, 1e-12);
}

TEST(Accuracy, SourcesCountOnceInTheirMeanHoweverManyRowsTheyHave) {
  // Two rows that are 10 % off and one that is 30 % off: 20 %, not 17 %.
  std::vector<MeasuredRun> runs{run("1", 10), run("2", 10), run("3", 10)};
  runs[2].source = "other";
  const auto sources =
      accuracy_by(RunGrouping::source, runs, {predicted(11), predicted(9), predicted(13)});
  const MeanOverSources mean = mean_over(sources);
  EXPECT_EQ(mean.sources, 2);
  EXPECT_NEAR(*mean.mape, 0.2, 1e-12);
  EXPECT_EQ(mean.memory_sources, 0);
}

TEST(NeededFactor, IsWhatOneTermAloneWouldHaveToGrowBy) {
  // 10 s predicted, 13 measured: 6 s of compute would have to be 9.
  EXPECT_NEAR(*needed_factor(Seconds(6), Seconds(10), Seconds(13)), 1.5, 1e-12);
  // 3 s measured: compute cannot take less than no time, and a term of 10 ms explains nothing.
  EXPECT_FALSE(needed_factor(Seconds(6), Seconds(10), Seconds(3)));
  EXPECT_FALSE(needed_factor(Seconds(0.01), Seconds(10), Seconds(13)));
}

TEST(Accuracy, RunsThatDoNotSayWhatTheyKeepAreNotFalseAlarms) {
  std::vector<MeasuredRun> runs{run("1", 10), run("2", 10)};
  runs[1].says_what_is_kept = false;
  RunPrediction too_large = predicted(10);
  too_large.fits = false;
  const Accuracy all = accuracy_by(RunGrouping::source, runs, {too_large, too_large}).at(0);
  EXPECT_EQ(all.ran_not_fitting, 1);
  EXPECT_EQ(all.ran_unstated, 1);
}

}  // namespace
}  // namespace plait
