#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/shell/script_tokens.h"

namespace plait {

using Tokens = std::shared_ptr<const std::vector<Token>>;

inline bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

// Where a script is being read.
class TokenCursor {
 protected:
  [[noreturn]] void fault(std::string what) const {
    const bool there = tokens_ && at_ < tokens_->size();
    throw ScriptFault{there ? token().line : 0, std::move(what)};
  }

  const Token& token() const { return (*tokens_)[at_]; }
  bool ended() const { return at_ >= tokens_->size(); }
  bool is_mark(std::string_view text) const {
    return !ended() && token().kind == TokenKind::mark && token().text == text;
  }
  bool is_word(std::string_view text) const {
    return !ended() && token().kind == TokenKind::word && token().text == text;
  }
  bool take_mark(std::string_view text) { return is_mark(text) && ++at_ > 0; }
  bool take_word(std::string_view text) { return is_word(text) && ++at_ > 0; }
  void need(bool taken, const char* what) const {
    if (!taken) fault(fmt::format("a '{}' is missing", what));
  }
  void skip_lines() {
    while (is_mark("\n") || is_mark(";")) ++at_;
  }
  bool closes_list() const {
    if (ended() || is_mark(")") || is_mark(";;")) return true;
    return token().kind == TokenKind::word &&
           is_one_of(token().text, {"then", "elif", "else", "fi", "do", "done", "esac", "}"});
  }
  std::size_t at_of(const Token& where) const {
    return static_cast<std::size_t>(&where - tokens_->data());
  }

  Tokens tokens_;
  std::size_t at_ = 0;
};

}  // namespace plait
