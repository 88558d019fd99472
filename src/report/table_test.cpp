#include "report/table.h"

#include <gtest/gtest.h>

namespace plait {
namespace {

TEST(Table, ColumnsAreAsWideAsTheirWidestCell) {
  Table table({{"#"}, {"step"}, {"plan", Align::left}});
  table.row({"1", "1.5 s", "pp2 tp1"}).row({"10", "12.5 s", "pp1"});
  EXPECT_EQ(table.str({}),
            " #    step  plan\n"
            " 1   1.5 s  pp2 tp1\n"
            "10  12.5 s  pp1\n");
}

TEST(Table, EmptyColumnsAreLeftOut) {
  Table table({{"a"}, {"b"}, {"c", Align::left}});
  table.row({"1", "", "x"}).row({"2", "", "y"});
  EXPECT_EQ(table.str({}), "a  c\n1  x\n2  y\n");
}

TEST(Table, LastColumnIsBrokenAtBlanksAndStaysInItsColumn) {
  Table table({{"number"}, {"words", Align::left}});
  table.row({"1", "one two three four five six"});
  // 28 columns less 6 + 2 for the first leave 20: "one two three four" has 18, "five" no room.
  EXPECT_EQ(table.str({.columns = 28}),
            "number  words\n"
            "     1  one two three four\n"
            "        five six\n");
}

TEST(Table, HeadingIsBoldOnlyWithColour) {
  Table table({{"a", Align::left}});
  table.row({"1"});
  EXPECT_EQ(table.str({.columns = 80, .colour = true}), "\x1b[1ma\x1b[0m\n1\n");
}

TEST(Table, LettersBeyondAsciiTakeOneColumn) {
  Table table({{"name", Align::left}, {"n"}});
  table.row({"m\xC3\xBCnchen", "1"}).row({"bern", "2"});
  EXPECT_EQ(table.str({}),
            "name     n\n"
            "m\xC3\xBCnchen  1\n"
            "bern     2\n");
}

TEST(Table, NarrowTerminalsLoseTheColumnsThatAreLeastNeeded) {
  Table table({{"#"}, {"step", Align::right, 1}, {"bubble", Align::right, 2}, {"GiB"}});
  table.row({"1", "1.5 s", "3 %", "14"});
  // "#  step  bubble  GiB" takes 1 + 2 + 5 + 2 + 6 + 2 + 3 = 21 columns.
  EXPECT_EQ(table.str({.columns = 21, .narrow = true}), table.str({}));
  EXPECT_EQ(table.str({.columns = 20}), table.str({}));
  EXPECT_EQ(table.str({.columns = 20, .narrow = true}),
            "#   step  GiB\n"
            "1  1.5 s   14\n"
            "Hidden columns\n"
            "(terminal too\n"
            "narrow): bubble. A\n"
            "wider terminal, a\n"
            "pipe or JSON shows\n"
            "them.\n");
  EXPECT_EQ(table.str({.columns = 5, .narrow = true}).substr(0, 7), "#  GiB\n");
}

TEST(Wrapped, WordsLongerThanTheLineAreBrokenAfterCommas) {
  EXPECT_EQ(wrapped("a layers=1,2,3,4,5,6 b", 12),
            (std::vector<std::string>{"a", "layers=1,2,", "3,4,5,6 b"}));
}

TEST(Wrapped, WithoutCommasTheyAreBrokenBetweenChunks) {
  EXPECT_EQ(wrapped("layers=3/2/2,3/2", 12), (std::vector<std::string>{"layers=3/2/", "2,3/2"}));
}

TEST(Wrapped, OtherWordsLongerThanTheLineStandAlone) {
  EXPECT_EQ(wrapped("a layers=123456 b", 8), (std::vector<std::string>{"a", "layers=123456", "b"}));
  EXPECT_EQ(wrapped("", 8), (std::vector<std::string>{""}));
}

TEST(Paragraph, LinesAfterTheFirstAreIndented) {
  EXPECT_EQ(paragraph("one two three four five six seven", {.columns = 24}, 2),
            "one two three four\n  five six seven\n");
}

}  // namespace
}  // namespace plait
