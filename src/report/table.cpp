#include "report/table.h"

#include <algorithm>

#include "base/error.h"
#include "base/printable.h"

namespace plait {
namespace {

constexpr int kGap = 2;                    // blanks between columns
constexpr int kLeastColumns = 20;          // of the last column, however narrow the terminal is
constexpr std::size_t kMostOfCell = 4000;  // characters
constexpr int kReadableColumns = 32;       // of the last column before others are left out

std::string escaped(bool colour, const char* code, const std::string& text) {
  return colour ? std::string("\x1b[") + code + "m" + text + "\x1b[0m" : text;
}

// Width on a terminal: UTF-8 continuation bytes take no column.
int width_of(const std::string& text) {
  return static_cast<int>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, int width, Align align) {
  const std::string blanks(std::max(0, width - width_of(text)), ' ');
  return align == Align::left ? text + blanks : blanks + text;
}

// Of a line whose last column is broken as far as is still readable.
int least_width(const std::vector<Table::Column>& columns, const std::vector<int>& width,
                const std::vector<std::size_t>& shown) {
  int sum = 0;
  for (const std::size_t c : shown) sum += width[c] + kGap;
  const std::size_t last = shown.back();
  const int broken =
      columns[last].align == Align::left ? std::min(width[last], kReadableColumns) : width[last];
  return sum - kGap - width[last] + broken;
}

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

// Where a word that is too long may be broken: after a comma within the first `columns`.
// Where a word that is too long may be broken: after a comma, else between chunks.
std::size_t last_break_within(const std::string& line, int columns) {
  const auto last = static_cast<std::size_t>(std::max(1, columns) - 1);
  const std::size_t comma = line.find_last_of(',', last);
  return comma != line.npos ? comma : line.find_last_of('/', last);
}

}  // namespace

std::string Style::bold(const std::string& text) const { return escaped(colour, "1", text); }
std::string Style::dim(const std::string& text) const { return escaped(colour, "2", text); }
std::string Style::good(const std::string& text) const { return escaped(colour, "32", text); }
std::string Style::bad(const std::string& text) const { return escaped(colour, "31", text); }

std::vector<std::string> wrapped(const std::string& text, int columns) {
  std::vector<std::string> lines;
  std::string line;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t blank = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, blank - begin);
    begin = blank + 1;
    if (!line.empty() && width_of(line) + 1 + width_of(word) > columns) {
      lines.push_back(without_trailing_blanks(line));
      line.clear();
    }
    if (!line.empty()) line += ' ';
    line += word;
    while (width_of(line) > columns) {
      const std::size_t at = last_break_within(line, columns);
      if (at == line.npos) break;
      lines.push_back(line.substr(0, at + 1));
      line.erase(0, at + 1);
    }
  }
  if (!line.empty() || lines.empty()) lines.push_back(without_trailing_blanks(line));
  return lines;
}

std::string paragraph(const std::string& text, const Style& style, int indent) {
  std::string out;
  for (const std::string& line : wrapped(text, std::max(kLeastColumns, style.columns - indent)))
    out += (out.empty() ? "" : std::string(indent, ' ')) + line + "\n";
  return out;
}

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

Table& Table::row(std::vector<std::string> cells) {
  PLAIT_CHECK(cells.size() == columns_.size());
  // Cells have names of the user's files; colours are put around whole lines only.
  for (std::string& cell : cells) cell = printable(cell, kMostOfCell);
  rows_.push_back(std::move(cells));
  return *this;
}

// The columns that have something to say, and how wide each is.
std::vector<std::size_t> Table::shown_columns(std::vector<int>& width) const {
  std::vector<std::size_t> shown;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    for (const auto& row : rows_) width[c] = std::max(width[c], width_of(row[c]));
    if (width[c] == 0) continue;
    width[c] = std::max(width[c], width_of(columns_[c].heading));
    shown.push_back(c);
  }
  return shown;
}

std::string Table::str(const Style& style) const {
  std::vector<int> width(columns_.size());
  std::vector<std::size_t> shown = shown_columns(width);
  if (shown.empty()) return "";
  std::vector<std::string> left_out;
  while (style.narrow && least_width(columns_, width, shown) > style.columns) {
    const auto most =
        std::ranges::max_element(shown, {}, [&](std::size_t c) { return columns_[c].spare; });
    if (columns_[*most].spare == 0) break;
    left_out.push_back(columns_[*most].heading);
    shown.erase(most);
  }
  int before_last = 0;
  for (std::size_t i = 0; i + 1 < shown.size(); ++i) before_last += width[shown[i]] + kGap;
  const int room = std::max(kLeastColumns, style.columns - before_last);

  std::string heading;
  for (const std::size_t c : shown)
    heading += padded(columns_[c].heading, width[c], columns_[c].align) + std::string(kGap, ' ');
  std::string out = style.bold(without_trailing_blanks(heading)) + "\n";
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i + 1 < shown.size(); ++i)
      line +=
          padded(row[shown[i]], width[shown[i]], columns_[shown[i]].align) + std::string(kGap, ' ');
    const std::size_t last = shown.back();
    if (columns_[last].align == Align::right) {
      out += without_trailing_blanks(line + padded(row[last], width[last], Align::right)) + "\n";
      continue;
    }
    for (const std::string& part : wrapped(row[last], room)) {
      out += without_trailing_blanks(line + part) + "\n";
      line = std::string(before_last, ' ');
    }
  }
  if (left_out.empty()) return out;
  std::string note = "Hidden columns (terminal too narrow):";
  for (const std::string& name : left_out) note += (&name == &left_out.front() ? " " : ", ") + name;
  for (const std::string& line : wrapped(note + ". A wider terminal, a pipe or JSON shows them.",
                                         std::max(kLeastColumns, style.columns)))
    out += style.dim(line) + "\n";
  return out;
}

}  // namespace plait
