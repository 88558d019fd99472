#include "python/keywords.h"

#include <gtest/gtest.h>

#include <set>

#include "base/sample_complaint.h"
#include "cli/flags/plan_arguments.h"

namespace plait {
namespace {

// The request that keywords make, besides a model and a cluster.
PlanArguments set(Keywords keywords) {
  PlanArguments arguments;
  keywords.insert(keywords.begin(), {{"model", "gpt2"}, {"cluster", "T4:4"}});
  set_keywords(plan_flags(arguments), keywords);
  return arguments;
}

std::string complaint(const Keywords& keywords) {
  return samples::complaint([&] { set(keywords); });
}

TEST(Keywords, SetTheFieldsOfFlagsUnderAllTheirNames) {
  for (const char* name : {"tp", "tensor_model_parallel_size", "tensor_parallel"})
    EXPECT_EQ(set({{name, "4"}}).request.search.pins.tensor, 4) << name;
  EXPECT_EQ(set({{"global_batch_size", "64"}}).request.source.job.global_batch, 64);
}

TEST(Keywords, ListsAreJoinedOrGivenOneByOne) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(set({{"stages", Texts{"13", "12"}}}).request.search.pins.stages,
            (std::vector<int>{13, 12}));
  EXPECT_EQ(set({{"catalogue", Texts{"a.json", "b.json"}}}).request.source.catalogue,
            (Texts{"a.json", "b.json"}));
  EXPECT_EQ(complaint({{"stages", Texts{}}}), "stages: is empty");
}

TEST(Keywords, FalseIsTheSwitchThatSaysSoOrNothing) {
  EXPECT_EQ(set({{"sp", true}}).request.search.pins.sequence_parallel, true);
  EXPECT_EQ(set({{"sp", false}}).request.search.pins.sequence_parallel, false);
  EXPECT_EQ(set({{"sequence_parallel", false}}).request.search.pins.sequence_parallel, false);
  EXPECT_FALSE(set({{"free_layout", false}}).request.source.free_layout);
}

TEST(Keywords, MistakesNameTheKeyword) {
  EXPECT_EQ(complaint({{"micro_bach", "4"}}),
            "micro_bach: is not an argument of this function (did you mean 'micro_batch'?)");
  EXPECT_EQ(complaint({{"num_gpus", "8"}}),
            "num_gpus: is not an argument of this function: cluster 4xA100-80GB:8 says that there "
            "are 4 nodes of 8, and with a hostfile device says of what");
  EXPECT_EQ(complaint({{"tp", "4"}, {"tensor_parallel", "4"}}),
            "tensor_parallel: is the same as tp, which is also given");
  EXPECT_EQ(complaint({{"tp", true}}), "tp: needs a value (N), not True or False");
  EXPECT_EQ(complaint({{"sp", "yes"}}), "sp: is True or False");
  EXPECT_EQ(complaint({{"tp", "four"}}), "tp: must be a whole number, is 'four'");
  PlanArguments arguments;
  EXPECT_EQ(samples::complaint([&] { set_keywords(plan_flags(arguments), {}); }).substr(0, 17),
            "model: is missing");
}

TEST(Keywords, FlagsAndFieldsInTextsBecomeKeywords) {
  EXPECT_EQ(in_keywords("`stages`: has 2 stages, but `pipeline` is 3"),
            "stages: has 2 stages, but pp is 3");
  EXPECT_EQ(in_keywords("give --global-batch (or --max-batch)"),
            "give global_batch (or max_batch)");
  // What only looks like one stays.
  EXPECT_EQ(in_keywords("a--b.json, -- and ---"), "a--b.json, -- and ---");
}

TEST(Keywords, NoTwoFlagsHaveOneName) {
  PlanArguments arguments;
  std::set<std::string> names;
  for (const KeywordEntry& entry : keyword_entries(plan_flags(arguments))) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    for (const std::string& alias : entry.aliases) EXPECT_TRUE(names.insert(alias).second) << alias;
  }
  EXPECT_TRUE(names.contains("micro_batch_size"));
}

}  // namespace
}  // namespace plait
