#include "cost/layer/range_maximum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace plait {
namespace {

TEST(RangeMaximum, IsTheLargestValueOfEveryRange) {
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    std::vector<Bytes> values;
    // Few values, so that neighbours are often equal.
    for (int u = 0; u < 33; ++u) values.emplace_back(static_cast<double>(random() % 3));
    const RangeMaximum table(values);
    for (int begin = 0; begin < 33; ++begin)
      for (int end = begin + 1; end <= 33; ++end)
        EXPECT_EQ(table.most({begin, end}),
                  *std::max_element(values.begin() + begin, values.begin() + end));
  }
}

}  // namespace
}  // namespace plait
