#include "io/model/megatron_layout.h"

#include <gtest/gtest.h>

#include "base/sample_complaint.h"

namespace plait {
namespace {

std::vector<int> layers(const std::string& text) {
  std::vector<int> out;
  for (const LayoutStage& stage : parse_layout("x", text)) out.push_back(stage.layers);
  return out;
}

std::string complaint(const std::string& text) {
  return samples::complaint([&] { parse_layout("run.sh --layout", text); });
}

TEST(MegatronLayout, CountsLayersOfStages) {
  EXPECT_EQ(layers("Et*5|t*6|t*7|t*6L"), (std::vector<int>{5, 6, 7, 6}));
  EXPECT_EQ(layers("Ettt|(tt|)*3L"), (std::vector<int>{3, 2, 2, 2, 0}));
  // Commas part nothing, and bars may be repeated: "|ab|abcd" of Megatron's own comment.
  EXPECT_EQ(layers("Et,(|t)*2,tL"), (std::vector<int>{1, 1, 2}));
  EXPECT_EQ(layers("E|t*3|L"), (std::vector<int>{0, 3, 0}));
}

TEST(MegatronLayout, IsWrittenAsItIsRead) {
  for (const char* text : {"Et*5|t*6|t*7|t*6L", "E|t|t*2|L", "EtL"})
    EXPECT_EQ(layout_text(parse_layout("x", text)), text);
}

TEST(MegatronLayout, SaysWhatItDoesNotRead) {
  EXPECT_EQ(complaint("Et*|tL"),
            "run.sh --layout: a '*' needs a number from 1 on after it: 'Et*|tL'");
  EXPECT_EQ(complaint("Et|(t|L"), "run.sh --layout: a ')' is missing: 'Et|(t|L'");
  EXPECT_EQ(complaint("Et)|tL"), "run.sh --layout: a '(' is missing: 'Et)|tL'");
  EXPECT_EQ(complaint("Et|xL"), "run.sh --layout: 'x' is none of E, t, L, |, *, ( and ): 'Et|xL'");
  EXPECT_EQ(complaint("t|tL"), "run.sh --layout: must begin with its one E: 't|tL'");
  EXPECT_EQ(complaint("Et|t"), "run.sh --layout: must end with its one L: 'Et|t'");
  EXPECT_EQ(complaint("Et|tm|L"),
            "run.sh --layout: a prediction of several tokens (m) is not modelled: 'Et|tm|L'");
  EXPECT_TRUE(complaint("E(((t)*99999)*99999)*9L").find("is too long") != std::string::npos);
}

}  // namespace
}  // namespace plait
