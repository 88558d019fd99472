#pragma once

#include <string>
#include <string_view>

namespace plait::runtime {

// One word for the shell, whatever is in it: plain words as they are, others in single quotes.
std::string shell_quoted(const std::string& word);

// Whether a shell takes the text as a part of a word wherever it stands: letters, digits and
// _ . / : = , @ % + - only.
bool is_plain_word(std::string_view text);

// What the shell is in the middle of, at the end of a piece of a command.
enum class ShellState {
  plain,   // a word in quotes of its own can stand here
  nested,  // inside quotes, a substitution, a here-document or a comment, or after a backslash
};
// Careful rather than exact: a command that has a substitution or a here-document anywhere before
// counts as nested.
ShellState shell_state_after(std::string_view command);

}  // namespace plait::runtime
