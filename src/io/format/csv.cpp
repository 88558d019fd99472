#include "io/format/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"

namespace plait {
namespace {

constexpr std::size_t kMostCells = 4'000'000;  // some 400 MB as texts

std::string_view trimmed_cell(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

class CsvParser {
 public:
  CsvParser(const std::string& name, std::string_view text, char comma)
      : name_(name), text_(text), comma_(comma), plain_ends_{comma, '\r', '\n'} {
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
  }

  // False at the end of the text.
  bool next(CsvTable::Row& row) {
    while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) skip_line_end();
    if (at_ == text_.size()) return false;
    row.line = line_;
    row.cells.clear();
    while (true) {
      if (++cells_ > kMostCells)
        throw InputError(name_, fmt::format("has more than {} cells", kMostCells));
      row.cells.push_back(
          text_[at_ < text_.size() ? at_ : 0] == '"' && at_ < text_.size() ? quoted() : plain());
      if (at_ == text_.size()) return true;
      if (text_[at_] != comma_) {
        skip_line_end();
        return true;
      }
      ++at_;
    }
  }

 private:
  std::string plain() {
    const std::size_t end = std::min(text_.find_first_of(plain_ends_, at_), text_.size());
    std::string cell(text_.substr(at_, end - at_));
    at_ = end;
    return cell;
  }

  std::string quoted() {
    const int begin = line_;
    std::string cell;
    for (++at_; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\n') ++line_;
      if (c != '"') {
        cell += c;
      } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        cell += '"';
        ++at_;
      } else {
        ++at_;
        if (at_ < text_.size() && text_[at_] != comma_ && text_[at_] != '\n' && text_[at_] != '\r')
          throw InputError(fmt::format("{}:{}", name_, line_),
                           "a quoted field must be followed by a comma or the end of the line");
        return cell;
      }
    }
    throw InputError(fmt::format("{}:{}", name_, begin), "a quote is opened and never closed");
  }

  void skip_line_end() {
    if (text_[at_] == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') ++at_;
    ++at_;
    ++line_;
  }

  std::string name_;
  std::string_view text_;
  char comma_;
  std::string plain_ends_;
  std::size_t at_ = 0;
  std::size_t cells_ = 0;
  int line_ = 1;
};

}  // namespace

bool CsvTable::has(std::string_view column) const {
  return std::ranges::find(header, column) != header.end();
}

std::string_view CsvTable::cell(const Row& row, std::string_view column) const {
  const auto found = std::ranges::find(header, column);
  return found == header.end()
             ? std::string_view()
             : trimmed_cell(row.cells[static_cast<std::size_t>(found - header.begin())]);
}

std::string CsvTable::where(const Row& row) const { return fmt::format("{}:{}", name, row.line); }

CsvTable parse_csv(const std::string& name, std::string_view text, char comma) {
  if (text.find('\0') != text.npos) throw InputError(name, "is not a text file");
  CsvParser parser(name, text, comma);
  CsvTable table{.name = name};
  CsvTable::Row row;
  if (!parser.next(row)) throw InputError(name, "is empty; the first line names the columns");
  std::set<std::string_view> seen;
  for (const std::string& cell : row.cells) table.header.emplace_back(trimmed_cell(cell));
  for (const std::string& column : table.header)
    if (!seen.insert(column).second)
      throw InputError(table.where(row),
                       fmt::format("column '{}' is named twice", column.substr(0, 60)));
  while (parser.next(row)) {
    if (row.cells.size() != table.header.size())
      throw InputError(table.where(row), fmt::format("has {} fields where the header has {}",
                                                     row.cells.size(), table.header.size()));
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& cell : cells) {
    if (!line.empty() || &cell != &cells.front()) line += ',';
    // A byte order mark at the beginning of a file would be dropped.
    if (cell.find_first_of(",\"\r\n") == cell.npos && !cell.starts_with("\xEF\xBB\xBF")) {
      line += cell;
      continue;
    }
    line += '"';
    for (const char c : cell) line += c == '"' ? std::string("\"\"") : std::string(1, c);
    line += '"';
  }
  // A line with nothing on it does not count; one empty cell does.
  if (line.empty() && cells.size() == 1) line = "\"\"";
  return line + "\n";
}

}  // namespace plait
