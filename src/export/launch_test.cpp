#include "export/launch.h"

#include <gtest/gtest.h>

#include "base/sample_complaint.h"
#include "export/shell_words.h"
#include "plan/sample_plans.h"

namespace plait {
namespace {

TEST(ShellWords, AreQuotedWhereBashWouldReadThemOtherwise) {
  EXPECT_EQ(shell_word("run-1/train.py"), "run-1/train.py");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("two words"), "'two words'");
  EXPECT_EQ(shell_word("it's $HOME"), "'it'\\''s $HOME'");
  EXPECT_EQ(shell_word("a\nb"), "'a\nb'");
}

TEST(ShellWords, ACommentHasOneLine) {
  EXPECT_EQ(shell_comment("a\nrm -rf x"), "# a\\nrm -rf x\n");
}

std::string text_of(const std::vector<ExportedFile>& files, const std::string& name) {
  for (const ExportedFile& file : files)
    if (file.name == name) return file.text;
  return "";
}

// Two nodes of eight devices, of which the plan uses the second's first four and all of the first.
std::vector<LaunchNode> two_nodes() {
  return {{"node0", "Fast", {0, 1, 2, 3, 4, 5, 6, 7}, 8, 0}, {"node1", "Slow", {3, 2, 1, 0}, 8, 1}};
}

TEST(LaunchNodes, AreInTheOrderOfRanks) {
  const Problem problem = samples::sample_problem();
  Plan plan = samples::sample_plan();
  std::swap(plan.stages[0].devices, plan.stages[1].devices);
  plan.stages[1].devices = {DeviceId{8}, DeviceId{9}, DeviceId{10}, DeviceId{11}};
  const std::vector<LaunchNode> nodes = launch_nodes(problem, plan);
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].name, "node0");
  EXPECT_EQ(nodes[0].devices, (std::vector<int>{4, 5, 6, 7}));
  EXPECT_EQ(nodes[1].name, "node1");
  EXPECT_EQ(nodes[1].devices, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(nodes[1].of, 8);
}

TEST(LaunchFiles, AMixedClusterIsAHeterogeneousJob) {
  const auto files = launch_files(Launcher::slurm, "my model", two_nodes(), {"about", "", "true"});
  const std::string job = text_of(files, "job.sbatch");
  EXPECT_NE(job.find("#SBATCH --job-name=my-model\n"), std::string::npos) << job;
  EXPECT_NE(job.find("#SBATCH --nodes=1 --ntasks-per-node=1 --gpus-per-node=fast:8 --exclusive\n"
                     "#SBATCH hetjob\n"
                     "#SBATCH --nodes=1 --ntasks-per-node=1 --gpus-per-node=slow:8 --exclusive\n"),
            std::string::npos)
      << job;
  EXPECT_NE(job.find("srun --het-group=0-1 "), std::string::npos);
}

TEST(LaunchFiles, DevicesThatAreNotInOrderAreNamed) {
  const auto files = launch_files(Launcher::torchrun, "m", two_nodes(), {"about", "", "true"});
  ASSERT_EQ(files.size(), 1u);
  EXPECT_NE(files[0].text.find("DEVICES=('0,1,2,3,4,5,6,7' '3,2,1,0')"), std::string::npos);
  EXPECT_NE(files[0].text.find("PROCESSES=(8 4)"), std::string::npos);
}

TEST(LaunchFiles, AHostfileHasNoNamesWithBlanks) {
  std::vector<LaunchNode> nodes = two_nodes();
  nodes[1].name = "a b";
  const std::string complaint = samples::complaint([&] {
    launch_files(Launcher::ssh, "m", nodes, {"about", "", "true"});
  });
  EXPECT_TRUE(complaint.starts_with("node a b: is not a name that a hostfile can have"))
      << complaint;
  EXPECT_EQ(launch_files(Launcher::slurm, "m", nodes, {"about", "", "true"}).size(), 2u);
}

}  // namespace
}  // namespace plait
