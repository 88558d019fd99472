#include "io/plan/plan_json.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <limits>

#include "base/error.h"
#include "plan/check.h"
#include "plan/sample_plans.h"

namespace plait {

namespace {

using samples::sample_plan;
using samples::sample_problem;

std::string sample_file() { return plan_file_to_json(sample_problem(), sample_plan(), {}); }

// What read_plan_file() says of the text, with the folder of the file left out.
std::string complaint(const std::string& text) {
  const std::filesystem::path folder = testing::TempDir();
  const std::string path = folder / ("plan_json_test_" + std::to_string(getpid()) + ".json");
  write_text_file(path, text);
  std::string said = "no complaint";
  try {
    read_plan_file(path);
  } catch (const InputError& e) {
    said = e.what();
    said.replace(said.find(path), path.size(), "plan.json");
  }
  std::filesystem::remove(path);
  return said;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(PlanJson, EveryValidPlanReadsBackAsItself) {
  samples::RandomPlans random(5);
  for (int i = 0; i < 3000; ++i) {
    const Plan plan = random.next().plan;
    ASSERT_EQ(plan_from_json(parse_json("p", plan_to_json(plan))), plan);
  }
}

TEST(PlanJson, AFileHoldsTheWholeProblem) {
  samples::RandomPlans random(6);
  for (int i = 0; i < 50; ++i) {
    samples::Sample sample = random.next();
    sample.problem.profile.compute[{.unit = "decoder", .device_type = "Fast"}].forward =
        Seconds(1.0 / 3);
    const std::string text = plan_file_to_json(sample.problem, sample.plan, {});
    const PlanFile again = plan_file_from_json(parse_json("p", text));
    EXPECT_EQ(again.plan, sample.plan);
    EXPECT_EQ(again.problem, sample.problem);
    EXPECT_EQ(plan_file_to_json(again.problem, again.plan, {}), text);
  }
}

TEST(PlanJson, ThePredictionIsNotedForPeople) {
  Estimate estimate;
  estimate.step = Seconds(1.5);
  estimate.bubble = Seconds(std::numeric_limits<double>::infinity());
  estimate.stages.resize(1);
  estimate.stages[0].weights = Bytes(0x1p31);
  const std::string text = plan_file_to_json(sample_problem(), sample_plan(), estimate);
  EXPECT_NE(text.find(R"("predicted": {"step_s": 1.5, "pipeline_s": 0, "peak_memory_GiB": 2, )"
                      R"("fits": false})"),
            std::string::npos)
      << text;
  EXPECT_EQ(complaint(text), "no complaint");
}

TEST(PlanJson, UnderstandsMegatronsWords) {
  const Plan plan = plan_from_json(parse_json("p", R"({
    "schedule": "1f1b", "num_microbatches": 4, "context_parallel_size": 2,
    "expert_model_parallel_size": 1,
    "stages": [{"spans": [{"units": [0, 8], "tensor_model_parallel_size": 2,
                           "data_parallel_size": 1, "recompute_granularity": "selective"}],
                "devices": [0, 1, 2, 3]}]})"));
  EXPECT_EQ(plan.micro_batches, 4);
  EXPECT_EQ(plan.context, 2);
  EXPECT_EQ(plan.stages[0].spans[0].tensor, 2);
  EXPECT_EQ(plan.stages[0].spans[0].recompute, Recompute::selective);
}

TEST(PlanJson, SaysWhatIsWrongAndWhere) {
  const struct {
    std::string from, to, expected;
  } table[] = {
      {"\"plait_plan\": 1", "\"plait_plan\": 2",
       "plan.json#/plait_plan: version 2 is from a newer plait, this one reads version 1"},
      {"\"plait_plan\": 1", "\"plait\": 1",
       "plan.json#: 'plait_plan' is missing: not a plan saved by plait"},
      {"\"job\"", "\"jobs\"", "plan.json#: unknown key 'jobs' (did you mean 'job'?)"},
      {"\"tensor\": 2", "\"tensor\": 0",
       "plan.json#/plan/stages/0/spans/0/tensor: must be a whole number from 1 to 1000000000, "
       "is 0"},
      {"\"tensor\": 2", "\"tensor\": 2.5",
       "plan.json#/plan/stages/0/spans/0/tensor: must be a whole number from 1 to 1000000000, "
       "is 2.5"},
      {"\"tensor\": 2", "\"tensor\": 4",
       "plan.json#/plan/stages/0/spans/0/tensor: tensor 4 x data 2 x context 1 must be the 4 "
       "devices of the stage"},
      {"\"tensor\": 2", "\"tensor\": 2, \"tensor_model_parallel_size\": 2",
       "plan.json#/plan/stages/0/spans/0: 'tensor' and 'tensor_model_parallel_size' mean the "
       "same: keep one"},
      {"\"devices\": [4", "\"devices\": [99",
       "plan.json#/plan/stages/1/devices: device 99 is not one of the 16 of the cluster"},
      {"\"devices\": [4", "\"devices\": [3",
       "plan.json#/plan/stages/1/devices: device 3 is already used by stage 0"},
      {"\"units\": [0, 4]", "\"units\": [0]",
       "plan.json#/plan/stages/0/spans/0/units: must be [first, end], end being the unit after "
       "the last"},
      {"\"micro_batches\": 4", "\"micro_batches\": 16",
       "plan.json#/plan/stages/0/spans/0/data: must divide the micro-batch of 1 samples, is 2 "
       "(and 1 more: see 'plait check')"},
      {"\"offload\": 0", "\"offload\": -1", "plan.json#/plan/offload: must be from 0 to 1, is -1"},
      {"\"offload\": 0", "\"offload\": NaN",
       "plan.json: not valid JSON at line 12, column 16: syntax error while parsing value - "
       "invalid literal; last read: '\"offload\": N'"},
      {"\"schedule\": \"1f1b\"", "\"schedule\": \"2f2b\"",
       "plan.json#/plan/schedule: unknown value '2f2b', must be one of gpipe, 1f1b, interleaved, "
       "zb-h1, zb-2p, zb-v (did you mean '1f1b'?)"},
      {"\"global_batch\": 16", "\"global_batch\": \"many\"",
       "plan.json#/job/global_batch: must be a whole number from 1 to 1000000000, is \"many\""},
  };
  for (const auto& row : table)
    EXPECT_EQ(complaint(replaced(sample_file(), row.from, row.to)), row.expected) << row.to;
  EXPECT_EQ(complaint("[]"), "plan.json#: must be an object, is a list");
}

// Anything but InputError would end the test.
void read_anyhow(const std::string& text) {
  try {
    const PlanFile file = plan_file_from_json(parse_json("p", text));
    check_plan(file.problem, file.plan);
  } catch (const InputError&) {
  }
}

TEST(PlanJson, NoTruncationCrashes) {
  const std::string text = sample_file();
  for (std::size_t length = 0; length < text.size(); length += 7)
    read_anyhow(text.substr(0, length));
}

TEST(PlanJson, NoFlippedByteCrashes) {
  const std::string good = sample_file();
  samples::RandomPlans random(7);
  for (int i = 0; i < 4000; ++i) {
    std::string text = good;
    // Digits for digits as often as anything for anything: the file stays JSON and the values vary.
    for (int flips = 1 + random.below(3); flips > 0; --flips) {
      char& byte = text[random.below(static_cast<int>(text.size()))];
      if (i % 2 == 0)
        byte = static_cast<char>(random.below(256));
      else if (byte >= '0' && byte <= '9')
        byte = static_cast<char>('0' + random.below(10));
    }
    read_anyhow(text);
  }
}

TEST(PlanJson, NoSwappedValueCrashes) {
  const std::string good = sample_file();
  const std::string values[] = {"null", "-1", "1e308", "999999999", "\"\"", "[]", "{}", "true"};
  for (std::size_t at = good.find(": "); at != good.npos; at = good.find(": ", at + 2)) {
    const std::size_t end = good.find_first_of(",}]\n", at + 2);
    for (const std::string& value : values)
      read_anyhow(good.substr(0, at + 2) + value + good.substr(end));
  }
}

}  // namespace
}  // namespace plait
