#include "validation/cells/cell_values.h"

#include <gtest/gtest.h>

#include "validation/cells/table_text.h"

namespace plait {
namespace {

TEST(CellValues, NumbersAsPeopleWriteThem) {
  EXPECT_EQ(read_cell("1,024", CellKind::count), 1024);
  EXPECT_EQ(read_cell("1,234,567.5", CellKind::rate), 1234567.5);
  EXPECT_EQ(read_cell("250000 (approx, \"250k\")", CellKind::count), 250000);
  EXPECT_EQ(read_cell("~5", CellKind::count), 5);
  EXPECT_EQ(read_cell("2 per device", CellKind::count), 2);
  EXPECT_EQ(read_cell("8; assumed", CellKind::count), 8);
  EXPECT_EQ(read_cell("9.5±0.2", CellKind::seconds), 9.5);
  EXPECT_EQ(read_cell("45%", CellKind::percent), 45);
}

TEST(CellValues, UnitsOfTheColumn) {
  EXPECT_DOUBLE_EQ(*read_cell("9500 ms", CellKind::seconds), 9.5);
  EXPECT_EQ(read_cell("1.5min", CellKind::seconds), 90);
  EXPECT_EQ(read_cell("4k", CellKind::tokens), 4096);
  EXPECT_EQ(read_cell("4K tokens", CellKind::tokens), std::nullopt);
  EXPECT_EQ(read_cell("4096 tokens", CellKind::tokens), 4096);
  EXPECT_EQ(read_cell("73,728 MiB", CellKind::gib), 72);
  EXPECT_DOUBLE_EQ(*read_cell("350M", CellKind::billion), 0.35);
  EXPECT_EQ(read_cell("7B", CellKind::billion), 7);
  EXPECT_EQ(read_cell("7000000000", CellKind::billion), 7);
  EXPECT_EQ(read_cell("5.2k", CellKind::rate), 5200);
  EXPECT_EQ(read_cell("0.5M", CellKind::batch), 256 * 2048);
  EXPECT_EQ(read_cell("500,000", CellKind::batch), 500000);
}

// What is not understood is nothing, never its first digits.
TEST(CellValues, NoNumberIsCutOff) {
  for (const char* text : {"1,5", "4x8", "9-10", "2^20", "12 apples", "12,34", "eight", "",
                           "1,0245", "4 096", "<5", "8/16", "1..2"})
    EXPECT_EQ(read_cell(text, CellKind::count), std::nullopt) << text;
  EXPECT_EQ(read_cell("9.5 GiB", CellKind::seconds), std::nullopt);
}

TEST(TableText, TabsSemicolonsAndMarkdown) {
  for (const char* text :
       {"a,b\n1,2\n", "a\tb\n1\t2\n", "a;b\n1;2\n", "| a | b |\n| --- | ---: |\n| 1 | 2 |\n"}) {
    const CsvTable table = parse_table("t", text);
    ASSERT_EQ(table.rows.size(), 1u) << text;
    EXPECT_EQ(table.cell(table.rows[0], "b"), "2") << text;
  }
  EXPECT_EQ(parse_table("t", "| a |\n|---|\n| 1 |\n").rows[0].line, 3);
}

}  // namespace
}  // namespace plait
