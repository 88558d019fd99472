#include "io/shell/script_tokens.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace plait {
namespace {

constexpr int kMostBrackets = 200;  // of what stands in each other

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool ends_word(char c) {
  return is_blank(c) || std::string_view("\n;&|()<>").find(c) != std::string_view::npos;
}

// One past the quote that closes the one at `at`.
std::size_t end_of_quote(const std::string& text, std::size_t at, int depth);

// One past the parenthesis or brace that closes the one at `at`.
std::size_t end_of_bracket(const std::string& text, std::size_t at, int depth) {
  if (depth > kMostBrackets) throw ScriptFault{0, "too many brackets stand in each other"};
  const char open = text[at];
  const char close = open == '(' ? ')' : '}';
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    const char c = text[i];
    if (c == close) return i + 1;
    if (c == '\\')
      ++i;
    else if (c == '\'' || c == '"' || c == '`')
      i = end_of_quote(text, i, depth + 1) - 1;
    else if (c == open)
      i = end_of_bracket(text, i, depth + 1) - 1;
  }
  throw ScriptFault{0, std::string("a '") + close + "' is missing"};
}

std::size_t end_of_quote(const std::string& text, std::size_t at, int depth) {
  const char quote = text[at];
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == quote) return i + 1;
    if (quote == '\'') continue;
    if (text[i] == '\\')
      ++i;
    else if (quote == '"' && text[i] == '`')
      i = end_of_quote(text, i, depth + 1) - 1;
    else if (quote == '"' && text[i] == '$' && i + 1 < text.size() &&
             (text[i + 1] == '(' || text[i + 1] == '{'))
      i = end_of_bracket(text, i + 1, depth + 1) - 1;
  }
  throw ScriptFault{0, std::string("a ") + quote + " is missing"};
}

class Lexer {
 public:
  explicit Lexer(const std::string& text) : text_(text) {}

  std::vector<Token> all() {
    try {
      while (at_ < text_.size()) next();
    } catch (ScriptFault& fault) {
      fault.line = line_;
      throw;
    }
    mark("\n");
    return std::move(tokens_);
  }

 private:
  char here() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool starts(std::string_view what) const { return text_.compare(at_, what.size(), what) == 0; }
  void mark(const char* what) { tokens_.push_back({TokenKind::mark, what, line_}); }

  void next() {
    const char c = here();
    if (c == '\n') {
      mark("\n");
      ++at_;
      ++line_;
      take_documents();
    } else if (starts("\\\n") || starts("\\\r\n")) {
      at_ += starts("\\\n") ? 2 : 3;
      ++line_;
    } else if (is_blank(c)) {
      ++at_;
    } else if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (starts("((")) {
      const std::size_t end = end_of_bracket(text_, at_, 0);
      if (end - at_ < 4 || text_[end - 2] != ')') return split_parenthesis();
      add({TokenKind::arithmetic, text_.substr(at_ + 2, end - at_ - 4), line_}, end);
    } else if (c == '<' || c == '>' || starts("&>")) {
      redirection();
    } else if (ends_word(c)) {
      separator();
    } else {
      word();
    }
  }

  void split_parenthesis() {
    mark("(");
    ++at_;
  }

  void separator() {
    for (const std::string_view branch : {";;&", ";&"})  // which go on with the branches below
      if (starts(branch)) {
        mark(";;");
        at_ += branch.size();
        return;
      }
    for (const char* two : {";;", "&&", "||"})
      if (starts(two)) {
        mark(two);
        at_ += 2;
        return;
      }
    const char one[] = {here(), '\0'};
    mark(one);
    ++at_;
  }

  // Takes what was read up to `end`, and counts its lines.
  void add(Token token, std::size_t end) {
    line_ += static_cast<int>(std::count(text_.begin() + at_, text_.begin() + end, '\n'));
    at_ = end;
    tokens_.push_back(std::move(token));
  }

  // One past the word at `from`.
  std::size_t end_of_word(std::size_t from) const {
    std::size_t i = from;
    while (i < text_.size() && !ends_word(text_[i])) {
      const char c = text_[i];
      if (c == '\\')
        i = std::min(i + 2, text_.size());
      else if (c == '\'' || c == '"' || c == '`' || c == '$')
        i = end_of_nested(text_, i);
      else
        ++i;
    }
    return i;
  }

  void word() {
    const std::size_t end = end_of_word(at_);
    std::string text = text_.substr(at_, end - at_);
    const bool number = std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
    if (number && end < text_.size() && (text_[end] == '<' || text_[end] == '>')) {
      at_ = end;  // 2> file
      descriptor_ = std::move(text);
    } else if (end < text_.size() && text_[end] == '(' && text.ends_with('=')) {
      array(std::move(text), end);
    } else if (text == "[[") {
      at_ = end;
      test();
    } else {
      add({TokenKind::word, std::move(text), line_}, end);
    }
  }

  void skip_to_word(char close) {
    while (at_ < text_.size() && here() != close) {
      if (here() == '\n') ++line_;
      if (is_blank(here()) || here() == '\n')
        ++at_;
      else if (starts("\\\n") || starts("\\\r\n"))
        at_ = text_.find('\n', at_);
      else if (here() == '#')
        at_ = std::min(text_.find('\n', at_), text_.size());
      else
        return;
    }
  }

  void array(std::string name, std::size_t open) {
    Token token{TokenKind::array, std::move(name), line_};
    at_ = open + 1;
    for (skip_to_word(')'); here() != ')'; skip_to_word(')')) {
      if (at_ >= text_.size()) throw ScriptFault{0, "a ')' is missing"};
      const std::size_t end = end_of_word(at_);
      if (end == at_) throw ScriptFault{0, "an array has something between its words"};
      token.items.push_back(text_.substr(at_, end - at_));
      line_ += static_cast<int>(std::count(text_.begin() + at_, text_.begin() + end, '\n'));
      at_ = end;
    }
    ++at_;
    tokens_.push_back(std::move(token));
  }

  void test() {
    Token token{TokenKind::test, "", line_};
    for (skip_to_word('\0'); at_ < text_.size(); skip_to_word('\0')) {
      std::size_t end = end_of_word(at_);
      if (end == at_) end += starts("&&") || starts("||") ? 2 : 1;
      std::string item = text_.substr(at_, end - at_);
      at_ = end;
      if (item == "]]") {
        tokens_.push_back(std::move(token));
        return;
      }
      token.items.push_back(std::move(item));
    }
    throw ScriptFault{0, "a ]] is missing"};
  }

  // Where output goes is kept with the word before; what follows << stands after the line's end.
  void redirection() {
    const bool string = starts("<<<");
    const bool document = starts("<<") && !string;
    const bool indented = starts("<<-");
    const std::string descriptor = std::exchange(descriptor_, "");
    const bool output = here() != '<' && (descriptor.empty() || descriptor == "1");
    while (std::string_view("<>&|-").find(here()) != std::string_view::npos && here() != '\0')
      if (++at_, here() == '(') break;
    while (is_blank(here())) ++at_;
    const std::size_t end = here() == '(' ? end_of_bracket(text_, at_, 0) : end_of_word(at_);
    std::string target = text_.substr(at_, end - at_);
    at_ = end;
    if (output && !tokens_.empty()) tokens_.back().into = target;
    if (string) tokens_.push_back({TokenKind::here, target, line_, {}, false, true});
    if (!document) return;
    Token token{TokenKind::here, "", line_};
    token.literal = target.find_first_of("'\"\\") != target.npos;
    std::erase_if(target, [](char c) { return c == '\'' || c == '"' || c == '\\'; });
    waiting_.push_back({tokens_.size(), target, indented});
    tokens_.push_back(std::move(token));
  }

  void take_documents() {
    for (const Waiting& document : std::exchange(waiting_, {})) {
      std::string body;
      for (bool found = false; !found && at_ < text_.size(); ++line_) {
        const std::size_t end = std::min(text_.find('\n', at_), text_.size());
        std::string line = text_.substr(at_, end - at_);
        at_ = std::min(end + 1, text_.size());
        if (line.ends_with('\r')) line.pop_back();
        if (document.indented) line.erase(0, line.find_first_not_of('\t'));
        found = line == document.end;
        if (!found) body += line + "\n";
      }
      tokens_[document.token].text = std::move(body);
    }
  }

  struct Waiting {
    std::size_t token;
    std::string end;
    bool indented;
  };

  const std::string& text_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::string descriptor_;  // the 2 of 2> file
  std::vector<Token> tokens_;
  std::vector<Waiting> waiting_;
};

}  // namespace

bool is_variable_name(std::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  return std::ranges::all_of(text, [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

std::size_t end_of_nested(const std::string& text, std::size_t at) {
  if (text[at] != '$') return end_of_quote(text, at, 0);
  const char next = at + 1 < text.size() ? text[at + 1] : '\0';
  if (next == '(' || next == '{') return end_of_bracket(text, at + 1, 0);
  return at + 1;
}

std::vector<Token> script_tokens(const std::string& text) { return Lexer(text).all(); }

}  // namespace plait
