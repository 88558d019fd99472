#include "base/units.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace plait {
namespace {

using namespace literals;

TEST(Units, BytesOverBandwidthIsTime) {
  // 8 GiB = 8 * 2^30 B over 1e9 B/s
  const Seconds t = 8_GiB / 1_GBps;
  EXPECT_DOUBLE_EQ(t.value, 8 * 1073741824.0 / 1e9);
}

TEST(Units, PricePerSecondTimesSecondsIsMoney) {
  const Usd price = UsdPerSecond(2.0 / kSecondsPerHour) * Seconds(1800);
  EXPECT_DOUBLE_EQ(price.value, 1.0);
}

template <typename A, typename B>
concept Addable = requires(A a, B b) {
  a + b;
};
static_assert(Addable<Seconds, Seconds>);
static_assert(!Addable<Seconds, Bytes>);
static_assert(!Addable<Seconds, double>);

}  // namespace
}  // namespace plait
