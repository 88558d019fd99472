#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plait {

// A table of text with a header line, as RFC 4180 writes it: fields apart by commas, those with
// commas, quotes or line ends in double quotes, a quote inside doubled.
struct CsvTable {
  struct Row {
    int line = 0;  // of the file, where the row begins
    std::vector<std::string> cells;
  };
  std::string name;  // of the file, for messages
  std::vector<std::string> header;
  std::vector<Row> rows;

  bool has(std::string_view column) const;
  // The cell, without blanks around it; "" where the table has no such column.
  std::string_view cell(const Row& row, std::string_view column) const;
  // "runs.csv:12"
  std::string where(const Row& row) const;
};

// InputError when it is not a table: no header, a column named twice, a row with more or fewer
// cells than the header, a quote that is not closed, millions of cells. Empty lines do not count.
// Another sign than a comma may part the fields.
CsvTable parse_csv(const std::string& name, std::string_view text, char comma = ',');

// One line of a table, with quotes where they are needed and its line end.
std::string csv_line(const std::vector<std::string>& cells);

}  // namespace plait
