#include "validation/cells/table_text.h"

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace plait {
namespace {

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// "| a | b |" is a,b; the line of dashes under the header is empty.
std::string markdown_line(std::string_view line) {
  line = without_blanks(line);
  if (line.starts_with('|')) line.remove_prefix(1);
  if (line.ends_with('|')) line.remove_suffix(1);
  if (line.find_first_not_of("-:| ") == line.npos) return "\n";
  std::vector<std::string> cells(1);
  for (const char c : line)
    if (c == '|')
      cells.emplace_back();
    else
      cells.back() += c;
  for (std::string& cell : cells) cell = std::string(without_blanks(cell));
  return csv_line(cells);
}

std::string_view line_at(std::string_view text, std::size_t begin) {
  return text.substr(begin, text.find('\n', begin) - begin);
}

// Where a page's table begins: a line of bars above one of dashes; npos = nowhere.
std::size_t markdown_begins(std::string_view text) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::string_view line = line_at(text, begin);
    const std::size_t next = begin + line.size() + 1;
    const std::string_view under = next < text.size() ? line_at(text, next) : std::string_view{};
    const bool dashes = under.find("--") != under.npos && under.find('|') != under.npos &&
                        under.find_first_not_of("-:| \t\r") == under.npos;
    if (line.find('|') != line.npos && dashes) return begin;
    begin = next;
  }
  return std::string_view::npos;
}

// The lines before and after the table are empty ones, so that rows keep their numbers.
std::string from_markdown(const std::string& name, std::string_view text, std::size_t begin) {
  std::string out(static_cast<std::size_t>(std::ranges::count(text.substr(0, begin), '\n')), '\n');
  bool over = false;
  for (text.remove_prefix(begin); !text.empty();) {
    const std::string_view line = line_at(text, 0);
    const bool row = line.find('|') != line.npos;
    if (over && row && markdown_begins(text) == 0)
      throw InputError(name, "has more than one table: keep the one to be read");
    over = over || !row;
    out += row && !over ? markdown_line(line) : "\n";
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return out;
}

}  // namespace

CsvTable parse_table(const std::string& name, std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  const std::string_view header = text.substr(begin, text.find('\n', begin) - begin);
  const bool bars = header.find(" | ") != header.npos && header.find(',') == header.npos;
  if (header.starts_with('|') || bars) return parse_csv(name, from_markdown(name, text, begin));
  if (const std::size_t table = markdown_begins(text); table != text.npos)
    return parse_csv(name, from_markdown(name, text, table));
  for (const char sign : {',', '\t', ';'})
    if (header.find(sign) != header.npos) return parse_csv(name, text, sign);
  return parse_csv(name, text);
}

}  // namespace plait
