#include "search/papers/device_groups.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

namespace plait {
namespace {

using Lists = std::vector<std::vector<int>>;

Lists groupings(const GroupRules& rules, int stages) {
  Lists lists;
  for_each_grouping(rules, stages, [&](const std::vector<int>& list) {
    lists.push_back(list);
    return true;
  });
  return lists;
}

// 16 / 3 is 5 rounded down, and half of it 2.5: groups of 4 and 8. Only 4 + 4 + 8 makes 16.
TEST(DeviceGroups, AreAllOrdersOfPowersOfTwo) {
  EXPECT_EQ(groupings({16, 0.5, 6}, 3), (Lists{{4, 4, 8}, {4, 8, 4}, {8, 4, 4}}));
}

// At variance 1 groups of at least 5: 8 + 8 + 8 is too much.
TEST(DeviceGroups, AreFewerAtHigherVariance) { EXPECT_TRUE(groupings({16, 1, 6}, 3).empty()); }

TEST(DeviceGroups, OneStageTakesAllDevicesWhateverTheirNumber) {
  EXPECT_EQ(groupings({12, 1, 6}, 1), (Lists{{12}}));
}

// 1+1+1+1+4 fused to four groups: (1,1), 1, 1, 4. They have 4! / 2! = 12 orders; where 4 stands
// among four single devices decides what they read like, so 5 are different.
TEST(DeviceGroups, FusedOnesAreVisitedOnce) {
  const Lists lists = groupings({8, 0, 4}, 5);
  int with_four = 0;
  for (const std::vector<int>& list : lists)
    with_four += std::accumulate(list.begin(), list.end(), 0) == 8 &&
                 std::multiset<int>(list.begin(), list.end()) == std::multiset<int>{1, 1, 1, 1, 4};
  EXPECT_EQ(with_four, 5);
  EXPECT_EQ(std::set<std::vector<int>>(lists.begin(), lists.end()).size(), lists.size());
}

TEST(DeviceGroups, AddUpToTheDevices) {
  for (int stages = 1; stages <= 24; ++stages)
    for (const std::vector<int>& list : groupings({24, 0.5, 4}, stages)) {
      EXPECT_EQ(static_cast<int>(list.size()), stages);
      EXPECT_EQ(std::accumulate(list.begin(), list.end(), 0), 24);
    }
}

TEST(DeviceGroups, VisitingStopsWhenTold) {
  int visited = 0;
  EXPECT_FALSE(for_each_grouping({16, 0.5, 6}, 3, [&](const std::vector<int>&) {
    ++visited;
    return false;
  }));
  EXPECT_EQ(visited, 1);
}

}  // namespace
}  // namespace plait
