#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

// Why a text is not a shell script that plait can follow.
struct ScriptFault {
  int line = 0;
  std::string what;
};

enum class TokenKind {
  word,        // as it is written, quotes and all
  array,       // NAME=( .. ) or NAME+=( .. ): `text` is the part before the parenthesis
  test,        // [[ .. ]]: the words between
  arithmetic,  // (( .. )): what stands between
  here,        // the lines of a here-document, or the word of a here-string
  mark,        // ; & && | || ( ) ;; and the end of a line, which is "\n"
};

struct Token {
  TokenKind kind;
  std::string text;
  int line = 1;
  std::vector<std::string> items{};
  bool literal = false;               // of a here-document: nothing in it is filled in
  bool string = false;                // of a here-string: `text` is a word as it is written
  std::optional<std::string> into{};  // where what the command prints goes
};

// The tokens of a script, comments and redirections left out; throws ScriptFault.
std::vector<Token> script_tokens(const std::string& text);

bool is_variable_name(std::string_view text);

// Where what opens at `at`, one of $( $(( ${ ` and a quote, ends: one past its last character.
std::size_t end_of_nested(const std::string& text, std::size_t at);

}  // namespace plait
