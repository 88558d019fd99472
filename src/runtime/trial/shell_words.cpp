#include "runtime/trial/shell_words.h"

#include <algorithm>

namespace plait::runtime {

bool is_plain_word(std::string_view text) {
  constexpr std::string_view kOthers = "_./:=,@%+-";
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kOthers.find(c) != kOthers.npos;
  });
}

std::string shell_quoted(const std::string& word) {
  if (!word.empty() && is_plain_word(word)) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

ShellState shell_state_after(std::string_view command) {
  for (const std::string_view sign : {"`", "$(", "${", "<<"})
    if (command.find(sign) != command.npos) return ShellState::nested;
  char quote = 0;
  bool comment = false, escaped = false;
  for (const char c : command) {
    if (comment) {
      comment = c != '\n';
    } else if (escaped) {
      escaped = false;
    } else if (c == '\\' && quote != '\'') {
      escaped = true;
    } else if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '#') {
      comment = true;  // also inside a word, where it is none: careful
    }
  }
  return quote != 0 || comment || escaped || command.ends_with('$') ? ShellState::nested
                                                                    : ShellState::plain;
}

}  // namespace plait::runtime
