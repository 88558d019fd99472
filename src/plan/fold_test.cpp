#include "plan/fold.h"

#include <gtest/gtest.h>

#include <random>

namespace plait {
namespace {

constexpr std::size_t kMost = 10'000;

TEST(Fold, WritesWhatRepeatsOnce) {
  EXPECT_EQ(folded({"none", "none", "none"}), "none*3");
  EXPECT_EQ(folded({"none", "full", "none", "full", "none", "full", "none"}), "(none+full)*3+none");
  EXPECT_EQ(folded({"3", "3"}), "3+3");  // "3*2" is not shorter
  EXPECT_EQ(unfolded("(none*2+full)*2,5/7*2", kMost), "none+none+full+none+none+full,5/7+7");
}

TEST(Fold, WhatIsFoldedUnfoldsToTheSame) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<std::string> words;
    std::vector<std::string> pattern;
    for (unsigned i = 0; i < 1 + random() % 5; ++i) pattern.push_back(std::to_string(random() % 3));
    for (unsigned i = 0; i < random() % 40; ++i)
      words.push_back(random() % 8 == 0 ? "9" : pattern[i % pattern.size()]);
    std::string plain;
    for (const std::string& word : words) plain += (plain.empty() ? "" : "+") + word;
    ASSERT_EQ(unfolded(folded(words), kMost), plain);
    ASSERT_LE(folded(words).size(), plain.size());
  }
}

TEST(Fold, RefusesWhatIsNotWellFormedOrTooLong) {
  for (const char* text : {"(1", "1)", "(1+2)*", "1*0", "1*x", "((((((((((1))))))))))", "(1,2)*3"})
    EXPECT_FALSE(unfolded(text, kMost)) << text;
  EXPECT_FALSE(unfolded("((1*100)*100)*100", kMost));
}

}  // namespace
}  // namespace plait
