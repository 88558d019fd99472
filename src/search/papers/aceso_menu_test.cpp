#include "search/papers/aceso_menu.h"

#include <gtest/gtest.h>

#include <random>

namespace plait {
namespace {

// Ops a, b, c keep 10, 30, 20 and take 1, 2, 4. a with b saves 10 for 3; b with c saves 30 for 6;
// all three save 40 for 7. 10 for 3 lies above the line from nothing to 40 for 7.
TEST(RecomputeMenu, HoldsTheConvexHullOfAllChoices) {
  const std::vector<RecomputeOp> ops{{1, 10}, {2, 30}, {4, 20}};
  const std::vector<RecomputePoint> menu = recompute_menu(ops);
  ASSERT_EQ(menu.size(), 2U);
  EXPECT_EQ(menu[1].saved, 40);
  EXPECT_EQ(menu[1].time, 7);
  EXPECT_EQ(menu[1].peak, 60);
}

TEST(RecomputeMenu, NothingIsCheaperForItsPriceOnRandomChains) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    const int count = 1 + static_cast<int>(random() % 8);
    std::vector<RecomputeOp> ops(count);
    for (RecomputeOp& op : ops)
      op = {1.0 + static_cast<double>(random() % 50), static_cast<double>(random() % 40),
            random() % 6 != 0};
    const std::vector<RecomputePoint> menu = recompute_menu(ops);
    for (std::size_t i = 1; i < menu.size(); ++i) {
      ASSERT_GT(menu[i].saved, menu[i - 1].saved);
      const double price = (menu[i].time - menu[i - 1].time) / (menu[i].saved - menu[i - 1].saved);
      const double bar = menu[i].time - price * menu[i].saved;
      for (int bits = 0; bits < 1 << count; ++bits) {
        double time = 0, saved = 0;
        bool allowed = true;
        for (int o = 0; o < count; ++o) {
          if ((bits >> o & 1) == 0) continue;
          allowed = allowed && ops[o].allowed;
          time += ops[o].time;
          if (o + 1 < count && (bits >> (o + 1) & 1) != 0) saved += ops[o].kept;
        }
        if (allowed) {
          ASSERT_GE(time - price * saved, bar - 1e-9);
        }
      }
    }
  }
}

}  // namespace
}  // namespace plait
