#pragma once

#include <string>
#include <vector>

namespace plait {

// How text is laid out for whoever reads it. The default is for files and pipes: plain, and wide.
struct Style {
  int columns = 120;
  bool colour = false;  // terminal escapes: bold headings, dim notes
  bool narrow = false;  // rather leave out columns of a table than be wider than `columns`

  std::string bold(const std::string& text) const;
  std::string dim(const std::string& text) const;
  std::string good(const std::string& text) const;
  std::string bad(const std::string& text) const;
};

enum class Align { left, right };

// A table of text cells, each column as wide as its widest cell, columns two blanks apart:
//
//   #     step  plan
//   1  1.234 s  pp4 tp2 dp8 m32
//               1f1b zero1
//
// The last column is broken at blanks where the line would be wider than Style::columns. With
// Style::narrow, columns that may be left out are, until the line fits; a last line names them.
class Table {
 public:
  struct Column {
    std::string heading;
    Align align = Align::right;
    int spare = 0;  // > 0: may be left out on a narrow terminal, the highest first
  };

  explicit Table(std::vector<Column> columns);

  // As many cells as there are columns.
  Table& row(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  // Columns whose cells are all empty are left out.
  std::string str(const Style& style) const;

 private:
  std::vector<std::size_t> shown_columns(std::vector<int>& width) const;
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// The text in lines of at most `columns`, broken at blanks; a word that is longer stands alone, or
// is broken after a comma ("layers=5,5,5,").
std::vector<std::string> wrapped(const std::string& text, int columns);

// A paragraph: wrapped, every line after the first indented, each line ended.
std::string paragraph(const std::string& text, const Style& style, int indent = 0);

}  // namespace plait
