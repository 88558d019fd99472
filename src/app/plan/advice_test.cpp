#include "app/plan/advice.h"

#include <gtest/gtest.h>

#include "app/plan/quick_search.h"
#include "io/cluster/catalogue.h"
#include "io/cluster/cluster_shorthand.h"
#include "io/model/load_model.h"

namespace plait {
namespace {

// Llama-2 7B needs 126 GB of state, a T4 has 15.
Problem too_large() {
  Problem problem;
  problem.model = load_model("llama-2-7b", std::nullopt).model;
  problem.cluster = read_cluster_shorthand("1xT4:8", builtin_catalogue()).cluster;
  problem.job.global_batch = 8;
  problem.job.framework = find_framework(builtin_catalogue(), "", "framework");
  return problem;
}

Problem problem_of(const char* model, int sequence, const char* cluster, int batch,
                   const char* framework) {
  Problem problem;
  problem.model = load_model(model, sequence).model;
  problem.cluster = read_cluster_shorthand(cluster, builtin_catalogue()).cluster;
  problem.job.global_batch = batch;
  problem.job.framework = find_framework(builtin_catalogue(), framework, "framework");
  return problem;
}

NoPlan none_of(const Problem& problem, const Pins& pins = {}) {
  const SearchOptions options{.pins = pins, .target = *target_named(problem.job.framework.target)};
  return why_no_plan(problem, options, {}, {});
}

TEST(Advice, NamesWhatWasFoundToHelp) {
  const NoPlan none = why_no_plan(too_large(), {}, {}, {});
  EXPECT_FALSE(none.hurried);
  ASSERT_FALSE(none.remedies.empty());
  EXPECT_NE(in_words(none).find("it fits with"), std::string::npos) << in_words(none);
}

// A search that found none of the plans that fit says so: papers' planners have spaces of their
// own.
TEST(Advice, DoesNotCallAPlanThatFitsTheNearest) {
  const NoPlan none = none_of(problem_of("gpt2", 1024, "1xA100-80GB:1", 8, "megatron"));
  EXPECT_TRUE(none.overlooked);
  EXPECT_FALSE(none.nearest);
  EXPECT_NE(in_words(none).find("there are some (pp1"), std::string::npos) << in_words(none);
}

// Advice is searched for in what the search left of its time.
TEST(Advice, TakesNoTimeWhereNoneIsLeft) {
  const SearchOptions options = in_time_left({.time_limit = Seconds(5)}, Seconds(6));
  EXPECT_EQ(options.time_limit, Seconds(0));
  const NoPlan none = why_no_plan(too_large(), options, {}, {});
  EXPECT_TRUE(none.hurried);
  EXPECT_TRUE(none.remedies.empty());
}

// Two samples keep more than two devices from sharing the weights.
TEST(Advice, MoreDevicesMayNeedMoreSamples) {
  Problem problem;
  problem.model = load_model("llama-2-7b", 512).model;
  problem.cluster = read_cluster_shorthand("2xRTX4090", builtin_catalogue()).cluster;
  problem.job.global_batch = 2;
  problem.job.optimizer = Optimizer::sgd;
  problem.job.framework = find_framework(builtin_catalogue(), "fsdp", "framework");
  const SearchOptions options{.pins = {.offload = 0}, .target = *target_named("fsdp")};
  const std::string words = in_words(why_no_plan(problem, options, {}, {}));
  EXPECT_NE(words.find("`global_batch`"), std::string::npos) << words;
}

// Weights and gradients alone must fit where the optimizer's state is in host memory.
TEST(Advice, MoreDevicesAreCountedUnderThePins) {
  const Problem problem = problem_of("llama-2-13b", 4096, "1xRTX4090:1", 16, "deepspeed");
  const NoPlan none = none_of(problem, {.zero = ZeroStage::parameters, .offload = 1});
  ASSERT_EQ(none.remedies.size(), 1u) << in_words(none);
  EXPECT_EQ(none.remedies.front().cluster_times, 4);
  EXPECT_TRUE(none.remedies.front().without.empty());
}

// Under ZeRO 0 on one stage no number of devices holds it; without these pins some do.
TEST(Advice, ARemedyThatNeedsFewerPinsSaysSo) {
  const Problem problem = problem_of("gpt3-175b", 2048, "1xA100-80GB:8", 64, "megatron");
  const NoPlan none = none_of(problem, {.tensor = 1, .pipeline = 1, .zero = ZeroStage::off});
  ASSERT_FALSE(none.remedies.empty()) << in_words(none);
  for (const Remedy& remedy : none.remedies) EXPECT_EQ(remedy.without.size(), 3u) << in_words(none);
}

// A sample of PyTorch FSDP is on one device, however many there are.
TEST(Advice, AnotherProgramMayCutWhatThisOneCannot) {
  const NoPlan none = none_of(problem_of("llama-3-8b", 128 * 1024, "1xH100:8", 16, "fsdp"));
  const std::string words = in_words(none);
  EXPECT_NE(words.find("it fits with `framework` megatron"), std::string::npos) << words;
  EXPECT_EQ(words.find("more devices"), std::string::npos) << words;
}

TEST(Advice, WhatIsTooLargeMayBeTunedByAdapters) {
  const std::string words =
      in_words(none_of(problem_of("llama-3-8b", 2048, "1xRTX4090:1", 16, "megatron")));
  EXPECT_NE(words.find("`lora` 16, which trains adapters alone"), std::string::npos) << words;
}

// Aceso's runtime trains no adapters: advice for it names a program that does.
TEST(Advice, AdaptersAreTrainedByAProgramThatHasThem) {
  const std::string words =
      in_words(none_of(problem_of("gpt3-2.7b", 2048, "1xA10:1", 16, "aceso")));
  EXPECT_NE(words.find("with `framework` fsdp and `qlora` 16, which trains adapters alone"),
            std::string::npos)
      << words;
}

TEST(Advice, TakesNoLongerThanTheSearchMay) {
  SearchOptions options;
  options.time_limit = Seconds(0);
  const NoPlan none = why_no_plan(too_large(), options, {}, {});
  EXPECT_TRUE(none.hurried);
  EXPECT_TRUE(none.remedies.empty());
  EXPECT_NE(in_words(none).find("give it more `time_limit`"), std::string::npos) << in_words(none);
}

}  // namespace
}  // namespace plait
