#include "app/run/trial.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "app/plan/sample_requests.h"
#include "io/format/text_file.h"
#include "io/plan/plan_json.h"

namespace plait {
namespace {

namespace fs = std::filesystem;
using samples::complaint;
using samples::small_plan_request;

// A folder of its own for the trials of one test.
class TrialAnswerTest : public testing::Test {
 protected:
  TrialAnswerTest()
      : folder_(fs::path(testing::TempDir()) / (std::to_string(getpid()) + "_app_trials")) {
    fs::remove_all(folder_);
  }
  ~TrialAnswerTest() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  // Every plan "runs" at 0.5 s a step, but those whose tensor degree is 1 at 0.25 s.
  TrialRequest request() const {
    TrialRequest out;
    out.search = small_plan_request();
    out.launch =
        "if [ {tp} = 1 ]; then t=250; else t=500; fi; for i in 1 2; do echo \"elapsed time per "
        "iteration (ms): $t\"; done";
    out.folder = folder_.string();
    out.trials = 3;
    out.limits.warm_up = 1;
    out.limits.steps = 1;
    return out;
  }

  fs::path folder_;
};

TEST_F(TrialAnswerTest, EveryPlanOfTheSearchIsMeasuredAndTheTableIsNotRunAgain) {
  int told = 0;
  TrialSession session;
  session.tell = [&](const std::string&) { ++told; };
  const TrialAnswer first = answer(request(), session);
  ASSERT_EQ(first.rows.size(), 3u);
  EXPECT_EQ(told, 3);
  EXPECT_EQ(first.reason, "");
  for (const runtime::TrialRow& row : first.rows)
    EXPECT_EQ(row.result.end, runtime::TrialEnd::measured) << row.result.reason;

  TrialRequest again = request();
  int from_table = 0;
  session.tell = [&](const std::string& news) {
    from_table += news.find("(from the table)") != std::string::npos ? 1 : 0;
  };
  EXPECT_EQ(answer(again, session).rows.size(), 3u);
  EXPECT_EQ(from_table, 3);
}

TEST_F(TrialAnswerTest, TheBestPlanFileIsThePlanWithTheLeastMeasuredTime) {
  const TrialAnswer tried = answer(request(), {});
  const int best = agreement_of(tried.rows).best;
  ASSERT_GE(best, 0);
  const std::string path = (folder_ / "best.json").string();
  write_text_file(path, best_plan_file(tried));
  EXPECT_EQ(read_plan_file(path).plan, tried.plans[static_cast<std::size_t>(best)].plan);
}

TEST_F(TrialAnswerTest, SavedPlansBringTheirOwnModelAndCluster) {
  TrialRequest wrong = request();
  wrong.plans = {"plans"};
  EXPECT_EQ(complaint([&] { answer(wrong, {}); }),
            "`plans`: goes without `model` and `cluster`, which the plan files have");
}

TEST_F(TrialAnswerTest, AStoppedRequestTriesNothing) {
  std::stop_source stop;
  stop.request_stop();
  TrialSession session;
  session.stop = stop.get_token();
  const TrialAnswer none = answer(request(), session);
  EXPECT_TRUE(none.interrupted);
  EXPECT_TRUE(none.rows.empty());
}

TEST_F(TrialAnswerTest, MoreWordsForPlaitTrainNeedPlaitTrain) {
  TrialRequest wrong = request();
  wrong.train = "--device cpu";
  EXPECT_EQ(complaint([&] { answer(wrong, {}); }),
            "`train`: goes without `launch`, which starts another program");
}

TEST(TrialAgreement, ErrorsAreRelativeToWhatWasMeasured) {
  // Predicted 1, 2, 3 s; measured 2, 2, 4 s and one that failed: errors 1/2, 0 and 1/4.
  std::vector<runtime::TrialRow> rows(4);
  const double measured[] = {2, 2, 4};
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].predicted = Seconds(1.0 + double(i));
  for (std::size_t i = 0; i < 3; ++i) rows[i].result.step = Seconds(measured[i]);
  const TrialAgreement agreement = agreement_of(rows);
  EXPECT_EQ(agreement.measured, 3);
  EXPECT_EQ(agreement.best, 0);  // of equal ones the first
  EXPECT_DOUBLE_EQ(*agreement.median_error, 0.25);
  EXPECT_DOUBLE_EQ(*agreement.worst_error, 0.5);
}

}  // namespace
}  // namespace plait
