#include <gtest/gtest.h>

#include <cstdio>

#include "monotone/pairs.h"

// Who is better off is never slower.
namespace plait::monotone {
namespace {

void compare(std::uint64_t seed, int most_devices) {
  for (const Pair& pair : pairs_of(seed, most_devices)) {
    const Seconds worse = best_step(pair.worse);
    const Seconds better = best_step(pair.better);
    EXPECT_LE(excess(worse, better, pair.scale), kTolerance)
        << pair.kind << ", seed " << seed << ": " << pair.words << "; " << worse.value
        << " s, then " << better.value << " s";
  }
}

TEST(Monotone, WhoIsBetterOffIsNotSlower) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) compare(seed, 32);
}

class SlowMonotone : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Slow, SlowMonotone, testing::Range(0, 10));

TEST_P(SlowMonotone, WhoIsBetterOffIsNotSlowerOnLargeClusters) {
  const std::uint64_t first = 10'000 + 25 * static_cast<std::uint64_t>(GetParam());
  for (std::uint64_t seed = first; seed < first + 25; ++seed) compare(seed, 256);
}

}  // namespace
}  // namespace plait::monotone
