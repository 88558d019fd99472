#include "app/run/machine_fit.h"

#include <gtest/gtest.h>

#include "app/plan/sample_requests.h"
#include "cost/engine.h"

namespace plait {
namespace {

using samples::complaint;
using samples::small_plan_file;

constexpr Bytes kPlenty(0x1p40);

std::string complaint_about(const PlanFile& file, const std::string& device,
                            const runtime::LocalMachine& machine) {
  std::vector<int> ranks;
  for (const Stage& stage : file.plan.stages)
    for (std::size_t i = 0; i < stage.devices.size(); ++i)
      ranks.push_back(static_cast<int>(ranks.size()));
  return complaint([&] { check_machine({file, ranks, device}, machine, "plan.json"); });
}

// States and activations of all ranks: what the test's CPUs must have.
Bytes kept_by_all(const PlanFile& file) {
  const Estimate cost = CostEngine(file.problem).simulate(file.plan);
  Bytes sum;
  for (std::size_t s = 0; s < file.plan.stages.size(); ++s) {
    const StageCost& stage = cost.stages[s];
    sum += static_cast<double>(file.plan.stages[s].devices.size()) *
           (stage.weights + stage.gradients + stage.optimizer_state + stage.activations);
  }
  return sum;
}

TEST(MachineFit, APlanForGpusWithoutAGpuNeedsTheCpuByName) {
  const PlanFile file = small_plan_file();  // for A10
  EXPECT_TRUE(is_for_gpus(file));
  EXPECT_EQ(complaint_about(file, "auto", {kPlenty, {}}),
            "`device`: the plan is for A10, and this machine has no GPU that can be used; `device` "
            "cpu trains it on CPUs, which takes far longer");
  EXPECT_EQ(complaint_about(file, "cuda", {kPlenty, {}}),
            "`device`: cuda needs a GPU, and this machine has none that can be used");
  EXPECT_EQ(complaint_about(file, "cpu", {kPlenty, {}}), "");
  EXPECT_EQ(complaint_about(file, "auto", {kPlenty, {kPlenty, kPlenty, kPlenty, kPlenty}}), "");
}

TEST(MachineFit, DevicesOfAUsersOwnFileMayBeAnything) {
  PlanFile file = small_plan_file();
  for (DeviceType& type : file.problem.cluster.device_types) type.name = "EPYC";
  EXPECT_FALSE(is_for_gpus(file));
  EXPECT_EQ(complaint_about(file, "auto", {kPlenty, {}}), "");
}

TEST(MachineFit, TheMemoryOfAllRanksMustBeFree) {
  const PlanFile file = small_plan_file();
  const Bytes needed = kept_by_all(file);
  EXPECT_EQ(complaint_about(file, "cpu", {1.001 * needed, {}}), "");
  const std::string words = complaint_about(file, "cpu", {0.999 * needed, {}});
  EXPECT_TRUE(words.starts_with("plan.json: 4 ranks on this machine would need ")) << words;
  // A machine that does not tell is believed.
  EXPECT_EQ(complaint_about(file, "cpu", {std::nullopt, {}}), "");
}

TEST(MachineFit, EachGpuMustHoldItsRank) {
  const PlanFile file = small_plan_file();
  const std::vector<Bytes> small(4, Bytes(0x1p28));
  const std::string words = complaint_about(file, "auto", {kPlenty, small});
  EXPECT_TRUE(words.starts_with("plan.json: rank 0 would need ")) << words;
  EXPECT_NE(words.find("its GPU has 256 MiB"), std::string::npos) << words;
  EXPECT_EQ(complaint_about(file, "auto", {kPlenty, std::vector<Bytes>(4, Bytes(0))}), "");
}

}  // namespace
}  // namespace plait
