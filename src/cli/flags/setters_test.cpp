#include <gtest/gtest.h>

#include "base/sample_complaint.h"
#include "cli/flags/command.h"

namespace plait {
namespace {

std::string complaint(const Setter& set, const std::string& text) {
  return samples::complaint([&] { set("--flag", text); });
}

TEST(Setters, IntegersAreWholeAndInRange) {
  int value = -1;
  const Setter set = into_integer(value, 0, 10);
  EXPECT_EQ(complaint(set, "10"), "");
  EXPECT_EQ(value, 10);
  for (const char* wrong : {"", "1.0", "1e1", "x", " 1", "1 ", "0x1"})
    EXPECT_NE(complaint(set, wrong), "") << wrong;
  for (const char* outside : {"-1", "11", "99999999999999999999"})
    EXPECT_EQ(complaint(set, outside),
              std::string("--flag: must be from 0 to 10, is '") + outside + "'");
  EXPECT_EQ(value, 10);
}

TEST(Setters, TokensHaveBinaryThousands) {
  std::optional<int> value;
  const Setter set = into_tokens(value, 1, 1 << 24);
  EXPECT_EQ(complaint(set, "128k"), "");
  EXPECT_EQ(value, 131072);
  EXPECT_EQ(complaint(set, "1M"), "");
  EXPECT_EQ(value, 1 << 20);
  EXPECT_EQ(complaint(set, "4096"), "");
  EXPECT_EQ(value, 4096);
  for (const char* wrong : {"k", "0k", "1.5k", "128kk", "99M"})
    EXPECT_NE(complaint(set, wrong), "") << wrong;
}

TEST(Setters, SizesHaveAUnit) {
  EXPECT_EQ(parse_size("--flag", "12000MB"), 12e9);
  EXPECT_EQ(parse_size("--flag", "70GiB"), 70 * 0x1p30);
  std::optional<Bytes> value;
  for (const char* wrong : {"", "0", "0GB", "12GB/s", "12", "-1GB", "nanGB", "12 GB", "1e30TB"})
    EXPECT_NE(complaint(into_size(value), wrong), "") << wrong;
  EXPECT_FALSE(value);
}

TEST(Setters, ListsAreSeparatedByCommas) {
  std::vector<int> list{7};
  EXPECT_EQ(complaint(into_list(list, 1, 100), "13, 12,1"), "");
  EXPECT_EQ(list, (std::vector<int>{13, 12, 1}));
  EXPECT_NE(complaint(into_list(list, 1, 100), "1,,2"), "");
  EXPECT_NE(complaint(into_list(list, 1, 100), "1,2,"), "");
}

TEST(Setters, GapsArePerCentOrParts) {
  std::optional<double> value;
  EXPECT_EQ(complaint(into_gap(value), "2%"), "");
  EXPECT_EQ(value, 0.02);
  EXPECT_EQ(complaint(into_gap(value), "0.5"), "");
  EXPECT_EQ(value, 0.5);
  for (const char* wrong : {"", "%", "-1%", "101%", "1.5", "2 %", "nan", "x"})
    EXPECT_EQ(complaint(into_gap(value), wrong),
              "--flag: must be a gap such as 2% or 0.02, is '" + std::string(wrong) + "'");
  EXPECT_EQ(value, 0.5);
}

TEST(Setters, FractionsAreFromNoughtToOne) {
  double value = 0;
  EXPECT_EQ(complaint(into_fraction(value), "0.25"), "");
  EXPECT_EQ(value, 0.25);
  for (const char* wrong : {"-0.1", "1.1", "nan", "25%", ""})
    EXPECT_NE(complaint(into_fraction(value), wrong), "") << wrong;
}

TEST(Setters, TextIsNotEmpty) {
  std::string text;
  EXPECT_EQ(complaint(into_text(text), "x y"), "");
  EXPECT_EQ(text, "x y");
  EXPECT_EQ(complaint(into_text(text), ""), "--flag: is empty");
}

TEST(Setters, TimesHaveUnits) {
  EXPECT_EQ(parse_seconds("--t", "10"), 10);
  EXPECT_EQ(parse_seconds("--t", "10s"), 10);
  EXPECT_EQ(parse_seconds("--t", "500ms"), 0.5);
  EXPECT_EQ(parse_seconds("--t", "1.5m"), 90);
  EXPECT_EQ(parse_seconds("--t", "2h"), 7200);
  for (const char* wrong : {"", "s", "-1s", "0s", "inf", "nan", "1d", "1 s"})
    EXPECT_THROW(parse_seconds("--t", wrong), InputError) << wrong;
}

// Whatever is written, a message quotes a short part of it.
TEST(Setters, LongTextsAreCutInMessages) {
  int value = 0;
  const std::string text(100'000, 'x');
  EXPECT_LT(complaint(into_integer(value, 0, 10), text).size(), 200u);
}

}  // namespace
}  // namespace plait
