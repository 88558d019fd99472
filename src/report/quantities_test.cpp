#include "report/quantities.h"

#include <gtest/gtest.h>

namespace plait {
namespace {

TEST(InWords, TimesUseTheUnitThatSuitsThem) {
  EXPECT_EQ(in_words(Seconds(0)), "0");
  EXPECT_EQ(in_words(Seconds(12.345)), "12.35 s");
  EXPECT_EQ(in_words(Seconds(0.0081)), "8.10 ms");
  EXPECT_EQ(in_words(Seconds(45.2e-6)), "45.2 us");
  EXPECT_EQ(in_words(Seconds(4321)), "4321 s");
  EXPECT_EQ(in_words(Seconds(-0.002)), "-2.00 ms");
}

TEST(InWords, BytesArePowersOfTwo) {
  EXPECT_EQ(in_words(Bytes(1.5 * 0x1p30)), "1.5 GiB");
  EXPECT_EQ(in_words(Bytes(300 * 0x1p20)), "300 MiB");
  EXPECT_EQ(in_words(Bytes(20 * 0x1p40)), "20.0 TiB");
  EXPECT_EQ(in_gibibytes(Bytes(0x1p30 / 2)), "0.5");
}

TEST(InWords, SmallAmountsKeepTwoDigits) {
  EXPECT_EQ(in_words(Usd(12.3)), "$12.30");
  EXPECT_EQ(in_words(Usd(600000)), "$600,000");
  EXPECT_EQ(in_words(Usd(0.08)), "$0.080");
  EXPECT_EQ(in_words(Usd(0.000123)), "$0.00012");
  EXPECT_EQ(in_words(Usd(0)), "$0.00");
}

TEST(Change, NamesTheDirection) {
  EXPECT_EQ(change(0.05, "slower", "faster"), "5.0 % slower");
  EXPECT_EQ(change(-0.05, "slower", "faster"), "5.0 % faster");
  EXPECT_EQ(change(3, "slower", "faster"), "4.0 times slower");
  EXPECT_EQ(change(0.0001, "slower", "faster"), "no difference");
}

TEST(Counts, AreGroupedOrAbbreviated) {
  EXPECT_EQ(grouped(6738415616), "6,738,415,616");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(-1000), "-1,000");
  EXPECT_EQ(abbreviated(6738415616), "6.74 B");
  EXPECT_EQ(abbreviated(124439808), "124.4 M");
  EXPECT_EQ(abbreviated(1.2e12), "1.20 T");
  EXPECT_EQ(abbreviated(5120), "5,120");
  EXPECT_EQ(counted(1, "node"), "1 node");
  EXPECT_EQ(counted(1234, "node"), "1,234 nodes");
}

}  // namespace
}  // namespace plait
