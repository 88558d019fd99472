#include "runtime/launch/restarts.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "io/format/json_reader.h"
#include "plan/check.h"
#include "plan/sample_plans.h"

namespace plait::runtime {
namespace {

class RestartsTest : public testing::Test {
 protected:
  RestartsTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    file_.problem = samples::sample_problem();
    file_.problem.cluster = samples::sample_cluster(1, 1);
    Stage stage;
    stage.spans = {{.units = {0, file_.problem.model.unit_count()}, .tensor = 1, .data = 4}};
    for (int d = 0; d < 4; ++d) stage.devices.push_back(DeviceId(d));
    file_.plan.stages = {stage};
    // Only these four are there: the others of the node are gone already.
    file_.problem.cluster.devices.resize(4);
    path_ = folder_ + "/plan.json";
    write_text_file(path_, plan_file_to_json(file_.problem, file_.plan, std::nullopt));
  }

  LaunchOutcome run(const std::string& script, const RestartOptions& restarts,
                    LaunchOptions options = {}) {
    options.grace = Seconds(0.3);
    options.environment = {{"FOLDER", folder_}};
    options.on_line = [this](int rank, bool, const std::string& line) {
      lines_.push_back(std::to_string(rank) + ": " + line);
    };
    RestartOptions told = restarts;
    told.folder = folder_;
    told.tell = [this](const std::string& sentence) { told_.push_back(sentence); };
    return launch_with_restarts(options, path_, told, [&](const std::string& plan_path) {
      return std::vector<std::string>{"sh", "-c", script, "rank", plan_path};
    });
  }

  const std::string folder_ =
      (std::filesystem::path(testing::TempDir()) /
       (std::string("restarts_") + testing::UnitTest::GetInstance()->current_test_info()->name()))
          .string();
  PlanFile file_;
  std::string path_;
  std::vector<std::string> lines_, told_;
};

TEST_F(RestartsTest, AllRanksStartAgainWithTheSamePlan) {
  const LaunchOutcome outcome =
      run("if [ $RANK = 2 ] && mkdir $FOLDER/once 2>/dev/null; then kill -9 $$; fi; "
          "if [ ! -d $FOLDER/once ]; then sleep 20; fi; echo $WORLD_SIZE",
          {.most = 1});
  EXPECT_TRUE(outcome.good());
  ASSERT_EQ(told_.size(), 2U);
  EXPECT_NE(told_[0].find("rank 2 was killed by SIGKILL"), std::string::npos);
  EXPECT_EQ(told_[1], "restart 1 of 1");
}

TEST_F(RestartsTest, RestartsAreCounted) {
  const LaunchOutcome outcome = run("exit 3", {.most = 2});
  EXPECT_TRUE(outcome.failure);
  EXPECT_EQ(told_.size(), 5U);  // three failures, two restarts
}

TEST_F(RestartsTest, WrongInputIsNotTriedAgain) {
  const LaunchOutcome outcome = run("exit 2", {.most = 5});
  EXPECT_TRUE(outcome.failure);
  EXPECT_EQ(told_.size(), 1U);
}

TEST_F(RestartsTest, ADeviceThatIsLostIsPlannedWithout) {
  LaunchOptions options;
  options.threads = {1, 2, 3, 4};
  RestartOptions restarts{.most = 1, .device_lost = true};
  const LaunchOutcome outcome =
      run("if [ $WORLD_SIZE = 4 ]; then if [ $RANK = 1 ]; then exit 9; fi; sleep 20; fi; "
          "echo $WORLD_SIZE $OMP_NUM_THREADS $(basename $1)",
          restarts, options);
  EXPECT_TRUE(outcome.good());
  const PlanFile after = read_plan_file(folder_ + "/restart-1.json");
  EXPECT_EQ(after.problem.cluster.device_count(), 3);
  const std::size_t world = devices_of_ranks(after.plan).size();
  ASSERT_EQ(lines_.size(), world);
  // Rank 0 keeps its one thread, and the next that are left had three and four.
  for (const std::string& line : lines_) {
    EXPECT_EQ(line.substr(1, 3), ": " + std::to_string(world));
    EXPECT_NE(line.find("restart-1.json"), std::string::npos);
    EXPECT_EQ(line.find(" 2 "), std::string::npos) << line;
  }
}

TEST_F(RestartsTest, PlansThatCannotBeExecutedAreLeftOut) {
  RestartOptions restarts{.most = 1, .device_lost = true};
  const Plan best = plan_without_ranks(file_, {1, 2}, restarts).file.plan;
  restarts.unsupported_reason = [&](const Problem&, const Plan& plan) {
    return plan == best ? "no" : "";
  };
  EXPECT_NE(plan_without_ranks(file_, {1, 2}, restarts).file.plan, best);
  restarts.unsupported_reason = [](const Problem&, const Plan&) { return "no"; };
  EXPECT_THROW(plan_without_ranks(file_, {1}, restarts), InputError);
  EXPECT_THROW(plan_without_ranks(file_, {0, 1, 2, 3}, restarts), InputError);
}

}  // namespace
}  // namespace plait::runtime
