#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "monotone/pairs.h"

// Who is better off is never slower.
namespace plait::monotone {
namespace {

struct Tally {
  int pairs = 0;
  int slower = 0;
  std::string worst;
  double most = 0;
};

// More effort goes on from what less of it found: it may only give a regular plan up for one that
// is less than 1 % slower. Everything else is searched anew, and now and then found to be slower.
void compare(std::uint64_t seed, int most_devices, Tally& tally) {
  for (const Pair& pair : pairs_of(seed, most_devices)) {
    const Seconds worse = best_step(pair.worse);
    const Seconds better = best_step(pair.better);
    const double over = excess(worse, better, pair.scale);
    const std::string said = pair.kind + ", seed " + std::to_string(seed) + ": " + pair.words;
    if (pair.kind == "more effort") {
      EXPECT_LE(over, 0.01) << said;
    }
    ++tally.pairs;
    if (over > kTolerance) ++tally.slower;
    if (over > tally.most) tally.most = over, tally.worst = said;
  }
}

void judge(const Tally& tally) {
  std::printf("%d of %d pairs slower by more than 0.5 %%, most by %.1f %%: %s\n", tally.slower,
              tally.pairs, 100 * tally.most, tally.worst.c_str());
  EXPECT_LE(tally.slower, 0.15 * tally.pairs) << tally.worst;
}

TEST(Monotone, WhoIsBetterOffIsSeldomSlower) {
  Tally tally;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) compare(seed, 16, tally);
  judge(tally);
}

class SlowMonotone : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Slow, SlowMonotone, testing::Range(0, 10));

TEST_P(SlowMonotone, WhoIsBetterOffIsSeldomSlowerOnLargeClusters) {
  Tally tally;
  const std::uint64_t first = 10'000 + 25 * static_cast<std::uint64_t>(GetParam());
  for (std::uint64_t seed = first; seed < first + 25; ++seed) compare(seed, 256, tally);
  judge(tally);
}

}  // namespace
}  // namespace plait::monotone
