#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace plait::graph {

// A place in a text that is being read, with its line and column for messages. Every step moves
// forward, so reading is linear in the text.
class Cursor {
 public:
  Cursor(std::string_view text, std::string where) : text_(text), where_(std::move(where)) {}

  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  std::size_t position() const { return at_; }
  std::string_view between(std::size_t from, std::size_t to) const {
    return text_.substr(from, to - from);
  }
  int line() const { return line_; }
  int column() const { return static_cast<int>(at_ - line_start_) + 1; }

  void step();
  // Blanks, line ends and comments.
  void skip_space();
  // The same, but stops at a line end.
  void skip_blanks();
  bool take(char c);
  bool take(std::string_view word);  // only a whole word
  void expect(char c, std::string_view after);
  // Letters, digits and _ . - $ / @ : as names of HLO have them; "" where there is none.
  std::string_view name();
  // The same without ':' and '/': opcodes, keys and types.
  std::string_view word();
  std::int64_t integer(std::string_view what);
  // From an opening bracket to the one that closes it, brackets and quoted text inside skipped.
  std::string_view balanced();
  // To a ',' or line end or closing bracket that is not inside brackets or quotes; trimmed.
  std::string_view value();

  // `back`: how many characters before here the mistake begins, on this line.
  [[noreturn]] void fail(const std::string& what, std::size_t back = 0) const;

 private:
  void skip_comment();
  void skip_quoted();
  void skip_nested();
  std::string_view text_;
  std::string where_;
  std::size_t at_ = 0;
  std::size_t line_start_ = 0;
  int line_ = 1;
};

}  // namespace plait::graph
