#include "graph/block/segments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <set>

namespace plait::graph {
namespace {

Cover cover(const std::string& letters, int longest = kLongestSegment) {
  const std::vector<std::uint64_t> sequence(letters.begin(), letters.end());
  return fewest_kinds(sequence, std::vector<char>(letters.size(), 0), longest);
}

TEST(Segments, RepeatedLayersAreOneKindHoweverManyThereAre) {
  EXPECT_EQ(cover("abcdabcd").kinds, 1);
  const Cover many = cover("eabcdabcdabcdabcdabcdabcdabcdabcdh");
  EXPECT_EQ(many.kinds, 3);  // first, layer, last
  EXPECT_EQ(many.lengths.size(), 10u);
  EXPECT_TRUE(many.exact);
}

TEST(Segments, EveryOtherLayerOfAnotherKindMakesTwoKinds) {
  const Cover both = cover("abcdabefabcdabefabcdabef");
  EXPECT_EQ(both.kinds, 2);
  EXPECT_EQ(both.lengths, (std::vector<int>{4, 4, 4, 4, 4, 4}));
}

// All covers, tried one by one.
int fewest_by_force(const std::string& letters, int longest) {
  int best = static_cast<int>(letters.size());
  std::vector<std::string> runs;
  const std::function<void(std::size_t)> extend = [&](std::size_t at) {
    if (at == letters.size()) {
      best = std::min(best, static_cast<int>(std::set(runs.begin(), runs.end()).size()));
      return;
    }
    for (int n = 1; n <= longest && at + n <= letters.size(); ++n) {
      runs.push_back(letters.substr(at, n));
      extend(at + n);
      runs.pop_back();
    }
  };
  extend(0);
  return best;
}

TEST(Segments, CoverOfRandomSequencesHasAsFewKindsAsAnyCover) {
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    std::string letters;
    const int length = 1 + static_cast<int>(random() % 11);
    const int alphabet = 1 + static_cast<int>(random() % 3);
    for (int n = 0; n < length; ++n) letters += static_cast<char>('a' + random() % alphabet);
    const int longest = 1 + static_cast<int>(random() % 5);
    const Cover found = cover(letters, longest);
    EXPECT_TRUE(found.exact);
    EXPECT_EQ(found.kinds, fewest_by_force(letters, longest)) << letters << " " << longest;
  }
}

TEST(Segments, RunsDoNotCrossBorders) {
  const std::vector<std::uint64_t> sequence{1, 2, 1, 2};
  const Cover cut = fewest_kinds(sequence, std::vector<char>{0, 1, 0, 1}, 5);
  for (const int length : cut.lengths) EXPECT_LE(length, 2);
  EXPECT_EQ(cut.kinds, 2);  // 1 | 2 | 1 | 2: fewer than 1 | 2 1 | 2
}

}  // namespace
}  // namespace plait::graph
