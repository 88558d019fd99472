#include "base/short_list.h"

#include <gtest/gtest.h>

#include <random>

namespace plait {
namespace {

using List = ShortList<int, 4>;

// Random changes to both, lengths on either side of what is kept inside.
TEST(ShortList, IsWhatAVectorIs) {
  std::mt19937 random(1);
  List list;
  std::vector<int> vector;
  const auto upto = [&](std::size_t most) { return random() % (most + 1); };
  for (int i = 0; i < 20'000; ++i) {
    const int value = static_cast<int>(random() % 100);
    switch (random() % 7) {
      case 0:
        list.push_back(value);
        vector.push_back(value);
        break;
      case 1: {
        const std::vector<int> more(upto(3), value);
        const std::size_t at = upto(vector.size());
        list.insert(list.begin() + at, more.begin(), more.end());
        vector.insert(vector.begin() + static_cast<std::ptrdiff_t>(at), more.begin(), more.end());
        break;
      }
      case 2: {
        const std::size_t first = upto(vector.size());
        const std::size_t last = first + upto(vector.size() - first);
        list.erase(list.begin() + first, list.begin() + last);
        vector.erase(vector.begin() + static_cast<std::ptrdiff_t>(first),
                     vector.begin() + static_cast<std::ptrdiff_t>(last));
        break;
      }
      case 3: {
        const std::size_t size = upto(8);
        list.resize(size);
        vector.resize(size);
        break;
      }
      case 4: {
        const std::size_t size = upto(6);
        list.assign(size, value);
        vector.assign(size, value);
        break;
      }
      case 5: {
        List copy = list;
        const List other = {value, value};
        list = other;
        list = std::move(copy);
        break;
      }
      default: {
        List moved = std::move(list);
        list = List(2, value);
        std::swap(list, moved);
      }
    }
    ASSERT_TRUE(std::ranges::equal(list, vector));
    ASSERT_EQ(list, List(vector));
    ASSERT_EQ(list.empty(), vector.empty());
    if (!vector.empty()) {
      ASSERT_EQ(list.front(), vector.front());
      ASSERT_EQ(list.back(), vector.back());
    }
  }
}

// What was moved from may be used again.
TEST(ShortList, IsEmptyWhenMovedFrom) {
  for (const std::size_t size : {3, 9}) {
    List list(size, 7);
    const List other = std::move(list);
    EXPECT_EQ(other, List(size, 7));
    EXPECT_TRUE(list.empty());  // NOLINT(bugprone-use-after-move)
    list.push_back(1);
    EXPECT_EQ(list, List({1}));
  }
}

}  // namespace
}  // namespace plait
