#include "io/format/checked_number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace plait {
namespace {

TEST(CheckedNumber, TakesOneRangeAndNothingBeyond) {
  for (const char* text : {"0", "1e-30", "1e30", "-1e30", "12.5", "1e29"})
    EXPECT_TRUE(checked_number(text)) << text;
  for (const char* text :
       {"", "1e308", "1e31", "1e-31", "-1e-40", "nan", "inf", "1e999", "1x", " 1"})
    EXPECT_FALSE(checked_number(text)) << text;
}

// 1e-30 us are 1e-36 s; back in microseconds they are a little less than 1e-30.
TEST(CheckedNumber, AConversionOfUnitsAndBackStaysInside) {
  for (const double value : {kSmallestQuantity, kLargestQuantity})
    for (const double unit : {1e-6, 1e-3, 1e9, 0x1p30, 3600.0, 1.0 / 3}) {
      const double once = in_range(value * unit / unit).value();
      EXPECT_EQ(in_range(once * unit / unit).value(), once) << value << " " << unit;
    }
  EXPECT_EQ(in_range(kSmallestQuantity * (1 - 1e-12)), kSmallestQuantity);
  EXPECT_FALSE(in_range(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_FALSE(in_range(HUGE_VAL));
}

// 1e-18 us are 1e-24 s, 1e18 TB are 1e30 bytes: both within the range of plain units.
TEST(CheckedNumber, UnitsWithAPrefixAreKnownByTheirKey) {
  for (const char* key : {"latency_us", "memory_GiB", "bandwidth_Gbps", "price_usd_per_hour"})
    EXPECT_TRUE(has_prefixed_unit(key)) << key;
  for (const char* key : {"latency_s", "memory_B", "bandwidth_Bps", "forward_flops", "us"})
    EXPECT_FALSE(has_prefixed_unit(key)) << key;
}

}  // namespace
}  // namespace plait
