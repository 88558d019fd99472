#include "validation/cells/table_text.h"

#include <algorithm>
#include <vector>

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

std::string from_markdown(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out += markdown_line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace

CsvTable parse_table(const std::string& name, std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  const std::string_view header = text.substr(begin, text.find('\n', begin) - begin);
  const bool bars = header.find(" | ") != header.npos && header.find(',') == header.npos;
  if (header.starts_with('|') || bars) return parse_csv(name, from_markdown(text));
  for (const char sign : {',', '\t', ';'})
    if (header.find(sign) != header.npos) return parse_csv(name, text, sign);
  return parse_csv(name, text);
}

}  // namespace plait
