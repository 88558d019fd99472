// What stands after the name in ${X%pattern}, ${X##pattern}, ${X/pattern/text}, ${X^^} and
// ${X:0:2}.
#include <algorithm>
#include <cctype>

#include "io/shell/script_tests.h"
#include "io/shell/script_words.h"

namespace plait {
namespace {

using Changed = std::optional<std::string>;

constexpr std::size_t kLongestChanged = 512;  // every part of a value is tried
constexpr std::ptrdiff_t kMostStars = 2;

std::string turned(std::string text, bool upper, bool all) {
  const auto turn = [&](unsigned char c) {
    return static_cast<char>(upper ? std::toupper(c) : std::tolower(c));
  };
  for (std::size_t i = 0; i < (all ? text.size() : std::min<std::size_t>(1, text.size())); ++i)
    text[i] = turn(static_cast<unsigned char>(text[i]));
  return text;
}

// Without the shortest, or the longest, part at one end that the pattern stands for.
std::string without_end(const std::string& value, const std::string& pattern, bool front,
                        bool longest, ScriptVariables& variables) {
  for (std::size_t i = 0; i <= value.size(); ++i) {
    const std::size_t size = longest ? value.size() - i : i;
    const std::size_t begin = front ? 0 : value.size() - size;
    if (!matches_pattern(pattern, value.substr(begin, size), variables)) continue;
    return front ? value.substr(size) : value.substr(0, begin);
  }
  return value;
}

// With the first, or every, place of a plain text replaced.
std::string replaced(std::string value, const std::string& text, const std::string& with,
                     bool every) {
  for (std::size_t at = value.find(text); at != value.npos; at = value.find(text, at)) {
    value.replace(at, text.size(), with);
    at += with.size();
    if (!every) break;
  }
  return value;
}

Changed with_replaced(const std::string& value, const std::string& operation, bool every,
                      ScriptVariables& variables) {
  const std::size_t slash = operation.find('/', operation.starts_with("\\/") ? 2 : 0);
  const std::string raw = operation.substr(0, slash);
  if (raw.find_first_of("*?[#%") != raw.npos) return std::nullopt;
  const std::string text = expand_text(raw, variables);
  const std::string with =
      slash == operation.npos ? "" : expand_text(operation.substr(slash + 1), variables);
  if (text.empty() || has_unknown(text) || has_unknown(with)) return std::nullopt;
  return replaced(value, text, with, every);
}

Changed part_of(const std::string& value, const std::string& range, ScriptVariables& variables) {
  const std::size_t colon = range.find(':');
  const auto begin = arithmetic(range.substr(0, colon), variables);
  const auto count = colon == range.npos ? std::optional<long long>(value.size())
                                         : arithmetic(range.substr(colon + 1), variables);
  if (!begin || !count) return std::nullopt;
  const auto size = static_cast<long long>(value.size());
  const long long from = *begin < 0 ? size + *begin : *begin;
  const long long to = *count < 0 ? size + *count : std::min(size, from + std::min(*count, size));
  if (from < 0 || from > size || to < from) return std::string();
  return value.substr(from, to - from);
}

}  // namespace

Changed changed_value(const std::string& value, const std::string& operation,
                      ScriptVariables& variables) {
  if (operation.empty() || value.size() > kLongestChanged || has_unknown(value))
    return std::nullopt;
  const char kind = operation[0];
  const bool twice = operation.size() > 1 && operation[1] == kind;
  const std::string rest = operation.substr(twice ? 2 : 1);
  if (kind == ':') return part_of(value, rest, variables);
  if (kind == '^' || kind == ',') {
    if (!rest.empty()) return std::nullopt;
    return turned(value, kind == '^', twice);
  }
  if (kind == '/') return with_replaced(value, rest, twice, variables);
  if ((kind != '%' && kind != '#') || std::ranges::count(rest, '*') > kMostStars)
    return std::nullopt;
  return without_end(value, rest, kind == '#', twice, variables);
}

}  // namespace plait
