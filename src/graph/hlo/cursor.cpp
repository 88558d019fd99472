#include "graph/hlo/cursor.h"

#include <fmt/format.h>

#include <cctype>
#include <vector>

#include "base/error.h"

namespace plait::graph {
namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-' ||
         c == '$';
}

bool is_name(char c) { return is_word(c) || c == '/' || c == '@' || c == ':'; }

char closing(char c) {
  if (c == '(') return ')';
  if (c == '[') return ']';
  return c == '{' ? '}' : '\0';
}

}  // namespace

void Cursor::fail(const std::string& what, std::size_t back) const {
  const int from = column() - static_cast<int>(back);
  throw InputError(where_ + ":" + std::to_string(line_) + ":" + std::to_string(from), what);
}

void Cursor::step() {
  if (text_[at_] == '\n') {
    ++line_;
    line_start_ = at_ + 1;
  }
  ++at_;
}

void Cursor::skip_comment() {
  step();
  step();
  while (!at_end() && !(text_[at_] == '*' && at_ + 1 < text_.size() && text_[at_ + 1] == '/'))
    step();
  if (at_end()) fail("the text ends inside a comment: it is cut off");
  step();
  step();
}

void Cursor::skip_space() {
  while (!at_end()) {
    if (std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
      step();
    } else if (text_[at_] == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '*') {
      skip_comment();
    } else if (text_[at_] == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '/') {
      while (!at_end() && text_[at_] != '\n') step();
    } else {
      return;
    }
  }
}

void Cursor::skip_blanks() {
  while (!at_end() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')) step();
}

bool Cursor::take(char c) {
  if (peek() != c || at_end()) return false;
  step();
  return true;
}

bool Cursor::take(std::string_view word) {
  if (!text_.substr(at_).starts_with(word)) return false;
  const std::size_t next = at_ + word.size();
  if (next < text_.size() && is_name(text_[next])) return false;
  while (at_ < next) step();
  return true;
}

void Cursor::expect(char c, std::string_view after) {
  skip_space();
  if (take(c)) return;
  if (at_end()) fail("the text ends after " + std::string(after) + ": it is cut off");
  fail(fmt::format("'{}' is missing after {}", c, after));
}

std::string_view Cursor::name() {
  const std::size_t from = at_;
  while (!at_end() && is_name(text_[at_])) {
    if (text_[at_] == '/' && at_ + 1 < text_.size() &&
        (text_[at_ + 1] == '*' || text_[at_ + 1] == '/'))
      break;
    ++at_;
  }
  return between(from, at_);
}

std::string_view Cursor::word() {
  const std::size_t from = at_;
  while (!at_end() && is_word(text_[at_])) ++at_;
  return between(from, at_);
}

std::int64_t Cursor::integer(std::string_view what) {
  skip_space();
  constexpr std::int64_t kMost = std::int64_t{1} << 53;
  if (std::isdigit(static_cast<unsigned char>(peek())) == 0)
    fail(std::string(what) + " is not a number");
  std::int64_t value = 0;
  while (std::isdigit(static_cast<unsigned char>(peek())) != 0) {
    value = value * 10 + (peek() - '0');
    if (value > kMost) fail(std::string(what) + " is larger than 2^53");
    step();
  }
  return value;
}

void Cursor::skip_quoted() {
  const char quote = text_[at_];
  step();
  while (!at_end() && text_[at_] != quote) {
    if (text_[at_] == '\\' && at_ + 1 < text_.size()) step();
    step();
  }
  if (at_end()) fail("the text ends inside quotes: it is cut off");
  step();
}

void Cursor::skip_nested() {
  std::vector<char> open;
  do {
    const char c = peek();
    if (c == '"') {
      skip_quoted();
      continue;
    }
    if (const char close = closing(c); close != '\0') open.push_back(close);
    if (c == ')' || c == ']' || c == '}') {
      if (open.back() != c) fail(fmt::format("'{}' stands where '{}' must", c, open.back()));
      open.pop_back();
    }
    step();
  } while (!open.empty() && !at_end());
  if (!open.empty()) fail("the text ends inside brackets: it is cut off");
}

std::string_view Cursor::balanced() {
  const std::size_t from = at_;
  if (closing(peek()) == '\0') fail("an opening bracket is missing");
  skip_nested();
  return between(from, at_);
}

std::string_view Cursor::value() {
  skip_blanks();
  const std::size_t from = at_;
  while (!at_end()) {
    const char c = peek();
    if (c == ',' || c == '\n' || c == '}' || c == ')' || c == ']') break;
    if (c == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '/') break;
    const bool first = at_ == from;
    if (c == '"') {
      skip_quoted();
      if (first) break;  // another instruction may follow on the line
    } else if (closing(c) != '\0') {
      skip_nested();
      if (first && c == '{') break;
    } else {
      step();
    }
  }
  std::size_t to = at_;
  while (to > from && std::isspace(static_cast<unsigned char>(text_[to - 1])) != 0) --to;
  return between(from, to);
}

}  // namespace plait::graph
