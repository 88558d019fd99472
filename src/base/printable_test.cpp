#include "base/printable.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace plait {
namespace {

TEST(Printable, OrdinaryTextOfAnyLanguageStays) {
  for (const char* text : {"", "gpt2", "Zwölf Boxkämpfer", "模型", "\U0001F600", "a\\b'\"`$"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, WhatCommandsATerminalIsShownAsAnEscape) {
  EXPECT_EQ(printable("a\x1b[31mb\a"), "a\\x1b[31mb\\x07");
  EXPECT_EQ(printable("a\nb\rc\td\x7f"), "a\\nb\\rc\\td\\x7f");
  EXPECT_EQ(printable("\u009b31m"), "\\u009b31m");          // C1: ESC [
  EXPECT_EQ(printable("\u202egnp.exe"), "\\u202egnp.exe");  // reverses what follows
  EXPECT_EQ(printable("a\u2028b\u2066c"), "a\\u2028b\\u2066c");
  EXPECT_EQ(printable("a\u200bb\ufeff"), "a\\u200bb\\ufeff");  // no width at all
}

TEST(Printable, BytesThatAreNotUtf8AreShownAsBytes) {
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("\xc3"), "\\xc3");                    // cut short
  EXPECT_EQ(printable("\xc0\x80"), "\\xc0\\x80");           // a long form of zero
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // half a surrogate pair
  EXPECT_EQ(printable("\x9b"), "\\x9b");
}

TEST(Printable, Utf8IsKnownFromOtherBytes) {
  EXPECT_TRUE(is_utf8("Zw\u00f6lf \U0001F600"));
  EXPECT_TRUE(is_utf8(""));
  for (const char* text : {"\xff", "a\xc3", "\xc0\x80", "\xed\xa0\x80"})
    EXPECT_FALSE(is_utf8(text));
}

TEST(Printable, LongTextsAreCutAndCounted) {
  const std::string longest(200, 'x');
  EXPECT_EQ(printable(longest), longest);
  EXPECT_EQ(printable(longest + "y"), fmt::format("{}... (201 bytes)", longest));
  EXPECT_EQ(printable("ääää", 2), "ää... (8 bytes)");
}

TEST(Printable, OfPagesOnlyLinesAndColoursStay) {
  EXPECT_EQ(printable_lines("a\n\x1b[1mb\x1b[0m\n"), "a\n\x1b[1mb\x1b[0m\n");
  EXPECT_EQ(printable_lines("\x1b]0;title\a \x1b[2J\u202e"), "\\x1b]0;title\\x07 \\x1b[2J\\u202e");
}

}  // namespace
}  // namespace plait
