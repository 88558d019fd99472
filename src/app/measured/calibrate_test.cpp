#include "app/measured/calibrate.h"

#include <gtest/gtest.h>

#include "app/measured/validate.h"
#include "app/plan/sample_requests.h"
#include "io/format/csv.h"
#include "io/format/test_folder.h"
#include "validation/sample_rows.h"

namespace plait {
namespace {

// Runs of one device type that all take 1.3 times as long as they are predicted to.
std::string slow_runs() {
  const std::vector<std::string> header{"row_id", "source_id", "framework", "model",      "seq_len",
                                        "gpu",    "num_gpus",  "tp",        "pp",         "mbs",
                                        "gbs",    "recompute", "precision", "iter_time_s"};
  const auto table = [&](const std::vector<double>& steps) {
    std::string text = csv_line(header);
    int row = 0;
    for (const char* tensor : {"1", "2", "4"})
      for (const char* batch : {"32", "128"}) {
        text += csv_line({std::to_string(row + 1), "mine", "Megatron-Core", "llama-2-7b", "4096",
                          "H100", "8", tensor, "1", "1", batch, "full", "bf16",
                          std::to_string(steps.empty() ? 1 : steps[row])});
        ++row;
      }
    return text;
  };
  std::vector<double> steps;
  for (const RunPrediction& prediction : predict_runs(read_published_runs("mine.csv", table({}))))
    steps.push_back(1.3 * prediction.step.value);
  return table(steps);
}

TEST(CalibrateAnswer, TheFileThatItWritesMakesTheRunsRight) {
  const samples::TestFolder folder;
  folder.write("mine.csv", slow_runs());
  const CalibrateAnswer fitted = answer(CalibrateRequest{.runs = folder.path("mine.csv")});
  EXPECT_EQ(fitted.rows, 6);
  EXPECT_NEAR(fitted.calibration.before, 0.262, 0.001);  // log 1.3
  EXPECT_LT(fitted.calibration.left_out, 0.05);
  EXPECT_EQ(reason(fitted), "");
  folder.write("mine.json", fitted.catalogue);
  const ValidateAnswer after = answer(
      ValidateRequest{.runs = folder.path("mine.csv"), .catalogue = {folder.path("mine.json")}});
  EXPECT_LT(*after.accuracy.at(0).mape, 0.05);
}

TEST(CalibrateAnswer, OneRunIsNotEnough) {
  const samples::TestFolder folder;
  folder.write("one.csv", samples::table_of(samples::gpt_row()));
  const CalibrateRequest request{.runs = folder.path("one.csv")};
  EXPECT_TRUE(
      samples::complaint([&] { answer(request); }).starts_with("`runs`: needs two rows or more"));
}

TEST(CalibrateAnswer, RunsThatArePredictedRightChangeNothing) {
  const samples::TestFolder folder;
  std::string text = slow_runs();
  folder.write("slow.csv", text);
  const CalibrateAnswer first = answer(CalibrateRequest{.runs = folder.path("slow.csv")});
  folder.write("mine.json", first.catalogue);
  const CalibrateAnswer again = answer(
      CalibrateRequest{.runs = folder.path("slow.csv"), .catalogue = {folder.path("mine.json")}});
  EXPECT_LT(again.calibration.before, 0.05);
  EXPECT_LE(again.calibration.left_out, again.calibration.before);
}

}  // namespace
}  // namespace plait
