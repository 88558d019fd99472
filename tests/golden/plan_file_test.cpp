// A saved plan of this version must stay readable, and the same plan must give the same bytes.
// PLAIT_UPDATE_GOLDEN=1 writes the file anew after a deliberate change of the format.
#include <gtest/gtest.h>

#include <cstdlib>

#include "io/plan/plan_json.h"
#include "plan/describe.h"
#include "plan/sample_frameworks.h"
#include "plan/sample_plans.h"
#include "source_tree.h"

namespace plait {
namespace {

// Uneven stages of two device types with every optional part of the file.
samples::Sample golden_sample() {
  samples::Sample sample{.problem = samples::sample_problem(), .plan = samples::sample_plan()};
  sample.problem.job.framework = samples::framework("megatron");
  Plan& plan = sample.plan;
  plan.zero = ZeroStage::optimizer;
  plan.sequence_parallel = true;
  plan.offload = 0.25;
  plan.stages[0].spans = {{.units = {0, 2}, .tensor = 1, .data = 4, .recompute = Recompute::full},
                          {.units = {2, 5}, .tensor = 2, .data = 2}};
  using enum TensorLayout;
  sample.problem.model.kinds.back().ops[0].cuts = {
      {Split::vocabulary, whole, by_feature, whole},
      {Split::row, by_feature, partial_sums, by_feature}};
  plan.stages[1].spans[0].units = {5, 7};
  plan.stages[1].spans.push_back({.units = {7, 8}, .tensor = 2, .data = 2, .split = 1});
  plan.stages[1].devices = {DeviceId{4}, DeviceId{5}, DeviceId{8}, DeviceId{9}};
  plan.stages[1].shares = {3, 1};
  Profile& profile = sample.problem.profile;
  profile.compute[{.unit = "decoder", .device_type = "Fast", .tensor = 2, .micro_batch = 4}] = {
      .forward = Seconds(0.0021),
      .backward = Seconds(0.0043),
      .saved_activations = Bytes(5e7),
      .workspace = Bytes(0)};
  profile.collectives[{.collective = "all_reduce", .device_type = "Fast"}] = {
      {.size = Bytes(1024), .time = Seconds(1e-5)}};
  return sample;
}

TEST(Golden, SavedPlanIsTheSameBytesAndReadsBack) {
  const std::string path = source_dir() + "/tests/golden/plan_file.json";
  const samples::Sample sample = golden_sample();
  Estimate estimate;
  estimate.step = Seconds(0.125);
  estimate.pipeline = Seconds(0.1);
  estimate.bubble = Seconds(0.01);
  estimate.fits = true;
  const std::string text = plan_file_to_json(sample.problem, sample.plan, estimate, "plait 0.0.0");
  if (std::getenv("PLAIT_UPDATE_GOLDEN") != nullptr) write_text_file(path, text);
  EXPECT_EQ(read_text_file(path), text);
  const PlanFile file = read_plan_file(path);
  EXPECT_EQ(file.plan, sample.plan);
  EXPECT_EQ(file.problem, sample.problem);
  EXPECT_EQ(file.made_by, "plait 0.0.0");
}

TEST(PlanFileText, NamesTheVersionThatWroteItAndIsReadWithoutIt) {
  const samples::Sample sample = golden_sample();
  const auto read_back = [](const std::string& text) {
    return plan_file_from_json(parse_json("plan.json", text)).made_by;
  };
  EXPECT_EQ(read_back(plan_file_to_json(sample.problem, sample.plan, {})), program_version());
  EXPECT_EQ(read_back(plan_file_to_json(sample.problem, sample.plan, {}, "")), "");
  EXPECT_TRUE(program_version().starts_with("plait ")) << program_version();
}

}  // namespace
}  // namespace plait
