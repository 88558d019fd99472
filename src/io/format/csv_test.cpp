#include "io/format/csv.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace plait {
namespace {

std::string refusal(const std::string& text) {
  try {
    parse_csv("t.csv", text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Csv, ReadsQuotesCommasAndLineEndsInsideAField) {
  const CsvTable table = parse_csv("t.csv", "a,b\r\n\"x, \"\"y\"\"\nz\",2\r\n\r\n3,\n");
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.cell(table.rows[0], "a"), "x, \"y\"\nz");
  EXPECT_EQ(table.cell(table.rows[0], "b"), "2");
  EXPECT_EQ(table.cell(table.rows[1], "b"), "");
  EXPECT_EQ(table.cell(table.rows[1], "c"), "");
  // The quoted field spans lines 2 and 3, line 4 is empty.
  EXPECT_EQ(table.where(table.rows[1]), "t.csv:5");
}

TEST(Csv, ALastCellMayBeEmptyAtTheEndOfTheFile) {
  const CsvTable table = parse_csv("t.csv", "a,b\n1,");
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.cell(table.rows[0], "b"), "");
}

TEST(Csv, RefusesWhatIsNoTable) {
  EXPECT_EQ(refusal(""), "t.csv: is empty; the first line names the columns");
  EXPECT_EQ(refusal("a,b\n1\n"), "t.csv:2: has 1 fields where the header has 2");
  EXPECT_EQ(refusal("a,b\n1,2,3\n"), "t.csv:2: has 3 fields where the header has 2");
  EXPECT_EQ(refusal("a,a\n"), "t.csv:1: column 'a' is named twice");
  EXPECT_EQ(refusal("a\n\"x\n\n"), "t.csv:2: a quote is opened and never closed");
  EXPECT_EQ(refusal("a\n\"x\"y\n"),
            "t.csv:2: a quoted field must be followed by a comma or the end of the line");
  EXPECT_EQ(refusal(std::string("a\n\0", 3)), "t.csv: is not a text file");
}

TEST(Csv, OneEmptyCellIsALine) {
  // Without quotes its line would be empty, and empty lines do not count.
  EXPECT_EQ(csv_line({""}), "\"\"\n");
  EXPECT_EQ(csv_line({"", ""}), ",\n");
}

TEST(Csv, WritesWhatItReadsBack) {
  const std::string line = csv_line({"", "a,b", "say \"x\"", "plain"});
  EXPECT_EQ(line, ",\"a,b\",\"say \"\"x\"\"\",plain\n");
  const CsvTable table = parse_csv("t.csv", "w,x,y,z\n" + line);
  EXPECT_EQ(table.cell(table.rows[0], "y"), "say \"x\"");
}

}  // namespace
}  // namespace plait
