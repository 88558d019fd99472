#include "export/shell_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/printable.h"

namespace plait {
namespace {

// What bash never treats in a special way, wherever it stands in a word.
bool is_plain(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("_-./:,+@%=").find(c) != std::string_view::npos;
}

std::string in_quotes(std::string_view word) {
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'')
      out += "'\\''";
    else
      out += c;
  }
  return out + "'";
}

}  // namespace

std::string shell_word(std::string_view word) {
  const bool plain = !word.empty() && std::ranges::all_of(word, is_plain);
  return plain ? std::string(word) : in_quotes(word);
}

std::string array_word(std::string_view word) {
  return word.find(',') == word.npos ? shell_word(word) : in_quotes(word);
}

std::string shell_array(std::string_view name, const std::vector<FlagWords>& flags) {
  std::string out = fmt::format("{}=(\n", name);
  for (const FlagWords& words : flags) {
    out += "  " + shell_word(words.flag);
    for (const std::string& value : words.values) out += " " + array_word(value);
    out += "\n";
  }
  return out + ")\n";
}

std::string shell_comment(std::string_view text) { return "# " + printable(text, 1000) + "\n"; }

}  // namespace plait
