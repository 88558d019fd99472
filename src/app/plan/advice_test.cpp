#include "app/plan/advice.h"

#include <gtest/gtest.h>

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

TEST(Advice, NamesWhatWasFoundToHelp) {
  const NoPlan none = why_no_plan(too_large(), {}, {}, {});
  EXPECT_FALSE(none.hurried);
  ASSERT_FALSE(none.remedies.empty());
  EXPECT_NE(in_words(none).find("it fits with"), std::string::npos) << in_words(none);
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
