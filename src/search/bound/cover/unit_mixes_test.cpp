#include "search/bound/cover/unit_mixes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace plait {
namespace {

TEST(UnitMixes, CountTheUnitsOfEachKind) {
  // An embedding (kind 2), four layers (0), a head (1): layers come first, being most.
  const UnitMixes mixes(std::vector<int>{2, 0, 0, 0, 0, 1});
  ASSERT_EQ(mixes.kind_count(), 3);
  EXPECT_EQ(mixes.kind(0), 0);
  EXPECT_EQ(mixes.mix_count(), 5 * 2 * 2);
  EXPECT_EQ(mixes.units_of(mixes.whole(), 0), 4);
  EXPECT_EQ(mixes.units_of(mixes.whole(), 1), 1);
  // 5 * 6 / 2 pairs of a number of layers and a part of it, 3 each of 0 or 1.
  EXPECT_EQ(mixes.pairs(), 15 * 3 * 3);
}

TEST(UnitMixes, PartsAddUpToTheWhole) {
  const UnitMixes mixes(std::vector<int>{0, 1, 1, 1, 1, 1, 2});
  // Stages of up to three units cost one each: seven units take three of them.
  std::vector<double> cost(mixes.mix_count(), HUGE_VAL);
  for (int mix = 1; mix < mixes.mix_count(); ++mix) {
    int units = 0;
    for (int k = 0; k < mixes.kind_count(); ++k) units += mixes.units_of(mix, k);
    if (units <= 3) cost[mix] = 1;
  }
  std::vector<int> parts;
  EXPECT_EQ(mixes.partition(cost, &parts), 3);
  EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), 0), mixes.whole());
}

// By trying all ways: the first unit that is left goes with every part of the rest.
double least_by_trial(const UnitMixes& mixes, const std::vector<double>& cost, int mix) {
  if (mix == 0) return 0;
  double least = HUGE_VAL;
  for (int part = 1; part <= mix; ++part) {
    bool inside = true;
    for (int k = 0; k < mixes.kind_count(); ++k)
      inside = inside && mixes.units_of(part, k) <= mixes.units_of(mix, k);
    if (inside) least = std::min(least, cost[part] + least_by_trial(mixes, cost, mix - part));
  }
  return least;
}

TEST(UnitMixes, ThePartitionIsTheCheapest) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 20; ++i) {
    const UnitMixes mixes(std::vector<int>{0, 1, 1, 1, 2, 2});
    std::vector<double> cost(mixes.mix_count());
    for (double& own : cost) own = static_cast<double>(random() % 1000);
    EXPECT_DOUBLE_EQ(mixes.partition(cost), least_by_trial(mixes, cost, mixes.whole()));
  }
}

TEST(UnitMixes, TooManyKindsAreSaidToBeTooMany) {
  std::vector<int> units(60);
  std::iota(units.begin(), units.end(), 0);
  EXPECT_GT(UnitMixes(units).pairs(), 1e9);
}

}  // namespace
}  // namespace plait
