#include "validation/explanations.h"

#include <gtest/gtest.h>

#include "validation/sample_rows.h"

namespace plait {
namespace {

// A row whose compute and data take what is given, and which took `measured`.
void add(std::vector<MeasuredRun>& runs, std::vector<RunPrediction>& predictions, double compute,
         double data, double measured) {
  MeasuredRun run{.id = std::to_string(runs.size()), .source = "s", .grade = "A", .device = "d"};
  run.step = Seconds(measured);
  runs.push_back(run);
  RunPrediction prediction{.made = true, .step = Seconds(compute + data)};
  prediction.terms.compute = Seconds(compute);
  prediction.terms.data = Seconds(data);
  predictions.push_back(prediction);
}

TEST(Explanations, NameTheTermWhoseOneFactorMakesAllRowsRight) {
  std::vector<MeasuredRun> runs;
  std::vector<RunPrediction> predictions;
  // Measured: compute as predicted, data three times as long.
  add(runs, predictions, 8, 1, 11);
  add(runs, predictions, 2, 2, 8);
  add(runs, predictions, 5, 0.5, 6.5);
  const std::vector<ErrorExplanation> found = explanations(runs, predictions);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].term, "data");
  EXPECT_NEAR(found[0].factor, 3, 1e-9);
  EXPECT_NEAR(found[0].after, 0, 1e-9);
  // 1 - 9/11, 1 - 4/8, 1 - 5.5/6.5
  EXPECT_NEAR(found[0].before, (2.0 / 11 + 0.5 + 1.0 / 6.5) / 3, 1e-12);
}

// A table may have 64 MiB: 200,000 rows of one source. Every third takes 1.5 times its compute, the
// others twice: the median of the factors is 2, also of all rows but one.
TEST(Explanations, OfAHundredThousandRowsOfOneSourceAreTheMedian) {
  std::vector<MeasuredRun> runs;
  std::vector<RunPrediction> predictions;
  constexpr int kRows = 100'000;
  for (int i = 0; i < kRows; ++i) add(runs, predictions, 1, 1, i % 3 == 0 ? 2.5 : 3);
  const std::vector<ErrorExplanation> found = explanations(runs, predictions);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NEAR(found[0].factor, 2, 1e-12);
  // A third has (1 * 2 + 1) / 2.5 - 1 left.
  EXPECT_NEAR(found[0].after, 0.2 / 3, 1e-5);
}

TEST(Explanations, SayNothingWhereNoTermHelpsRowsThatDidNotMakeIt) {
  std::vector<MeasuredRun> runs;
  std::vector<RunPrediction> predictions;
  add(runs, predictions, 10, 0, 11);
  add(runs, predictions, 10, 0, 9);
  add(runs, predictions, 10, 0, 10);
  EXPECT_TRUE(explanations(runs, predictions).empty());
}

TEST(Explanations, WhatLaunchingAddsIsApartOfCompute) {
  const std::vector<MeasuredRun> runs{samples::read({})};
  std::vector<RunPrediction> predictions = predict_runs(runs);
  const StepTerms before = predictions[0].terms;
  tell_host_apart(runs, predictions);
  const StepTerms after = predictions[0].terms;
  EXPECT_GT(after.host.value, 0);
  EXPECT_DOUBLE_EQ((after.host + after.compute).value, before.compute.value);
}

}  // namespace
}  // namespace plait
