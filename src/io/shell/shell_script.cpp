#include "io/shell/shell_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "io/shell/script_tests.h"
#include "io/shell/script_tokens.h"
#include "io/shell/script_words.h"
#include "io/shell/token_cursor.h"

namespace plait {
namespace {

constexpr int kMostSteps = 20'000;  // commands, those of loops each time
constexpr int kMostNested = 40;     // of compound commands, functions and included files
constexpr std::size_t kMostWords = 100'000;
constexpr std::size_t kMostCharacters = 1 << 25;  // of all values that were ever set
constexpr std::size_t kMostWarnings = 5;

enum class Leaving { no, next_turn, loop, function, script };

// Where a text of its own, that of a script, a function's file or an eval, is read.
class Runner : TokenCursor {
 public:
  Runner(const IncludedFile& included, ScriptCommands& out) : included_(included), out_(out) {}

  void run_text(const std::string& text) {
    const Tokens own =
        std::exchange(tokens_, std::make_shared<const std::vector<Token>>(script_tokens(text)));
    const std::size_t at = std::exchange(at_, 0);
    while (at_ < tokens_->size()) {
      const std::size_t before = at_;
      list(true);
      if (at_ == before) fault(fmt::format("'{}' opens nothing", token().text.substr(0, 40)));
    }
    tokens_ = own;
    at_ = at;
  }

 private:
  ScriptStatus list(bool live) {
    ScriptStatus status = ScriptStatus::yes;
    for (skip_lines(); !closes_list(); skip_lines()) {
      const ScriptStatus one = chain(live && leaving_ == Leaving::no);
      if (live) status = one;
      if (!take_mark("&") && !is_mark("\n") && !is_mark(";") && !closes_list())
        fault(fmt::format("'{}' is not expected", token().text.substr(0, 40)));
    }
    return status;
  }

  // a && b || c
  ScriptStatus chain(bool live) {
    ScriptStatus status = pipeline(live);
    while (is_mark("&&") || is_mark("||")) {
      const bool and_then = token().text == "&&";
      ++at_;
      while (is_mark("\n")) ++at_;
      const bool well = status == ScriptStatus::yes || status == ScriptStatus::ran;
      const bool next =
          live && leaving_ == Leaving::no && (and_then ? well : status == ScriptStatus::no);
      const ScriptStatus one = pipeline(next);
      if (next) status = one;
    }
    return status;
  }

  ScriptStatus pipeline(bool live) {
    const bool turned = take_word("!");
    ScriptStatus status = command(live);
    while (take_mark("|")) {
      take_mark("&");
      while (is_mark("\n")) ++at_;
      command(live);
      status = ScriptStatus::ran;
    }
    if (!turned) return status;
    if (status == ScriptStatus::yes) return ScriptStatus::no;
    return status == ScriptStatus::no ? ScriptStatus::yes : ScriptStatus::unknown;
  }

  ScriptStatus command(bool live) {
    if (ended()) fault("a command is missing");
    if (++steps_ > kMostSteps) fault("the script runs for too long");
    if (++depth_ > kMostNested) fault("too many commands stand in each other");
    const ScriptStatus status = any_command(live);
    --depth_;
    return status;
  }

  ScriptStatus any_command(bool live) {
    const Token& first = token();
    if (first.kind == TokenKind::test) return ++at_, condition(first, live);
    if (first.kind == TokenKind::arithmetic) return ++at_, sum(first, live);
    if (take_mark("(")) return group(live, ")");
    if (first.kind == TokenKind::word) {
      if (take_word("{")) return group(live, "}");
      if (take_word("if")) return branches(live);
      if (take_word("case")) return cases(live);
      if (take_word("for") || take_word("select")) return each(live);
      if (take_word("while") || take_word("until")) return turns(first.text == "until");
      if (take_word("function")) return function(std::string(first.text), true);
      if (at_ + 2 < tokens_->size() && (*tokens_)[at_ + 1].text == "(" &&
          (*tokens_)[at_ + 1].kind == TokenKind::mark && (*tokens_)[at_ + 2].text == ")")
        return function(first.text, false);
    }
    return simple(live);
  }

  ScriptStatus condition(const Token& test, bool live) {
    return live ? status_of_condition(test.items, variables_) : ScriptStatus::unknown;
  }

  ScriptStatus sum(const Token& text, bool live) {
    if (!live) return ScriptStatus::unknown;
    const auto value = arithmetic(text.text, variables_);
    if (!value) return ScriptStatus::unknown;
    return *value != 0 ? ScriptStatus::yes : ScriptStatus::no;
  }

  ScriptStatus group(bool live, const char* close) {
    const ScriptStatus status = list(live);
    need(close[0] == ')' ? take_mark(")") : take_word("}"), close);
    return status;
  }

  // A condition that is not known counts as false; that is said where it could matter.
  void note_unknown(const Token& where) {
    std::string text = where.text;
    for (const std::string& item : where.items) text += item + " ";
    for (std::size_t i = at_of(where) + 1; where.kind == TokenKind::word && i < tokens_->size();
         ++i) {
      if ((*tokens_)[i].kind != TokenKind::word) break;
      text += " " + (*tokens_)[i].text;
    }
    unknown_ = fmt::format("line {}: whether '{}' holds is not known: taken as false", where.line,
                           text.substr(0, 60));
  }

  void warn_of_branch(std::size_t begin) {
    if (unknown_.empty()) return;
    const std::string warning = std::exchange(unknown_, "");
    const bool matters =
        std::any_of(tokens_->begin() + begin, tokens_->begin() + at_, [](const Token& t) {
          return t.kind == TokenKind::array || t.text.find("--") != t.text.npos ||
                 (t.kind == TokenKind::word && !assigned_name(t.text).empty());
        });
    if (matters && out_.warnings.size() < kMostWarnings) out_.warnings.push_back(warning);
  }

  ScriptStatus branches(bool live) {
    bool open = live;  // no branch has been taken
    for (bool first = true; first || take_word("elif"); first = false) {
      skip_lines();
      if (ended()) fault("a 'then' is missing");
      const Token& where = token();
      const ScriptStatus status = list(open);
      need(take_word("then"), "then");
      const bool taken = open && status == ScriptStatus::yes;
      unknown_.clear();
      if (open && status != ScriptStatus::yes && status != ScriptStatus::no) note_unknown(where);
      const std::string unknown = std::exchange(unknown_, "");
      const std::size_t begin = at_;
      list(taken);
      unknown_ = unknown;
      warn_of_branch(begin);
      open = open && !taken;
    }
    if (take_word("else")) list(open);
    need(take_word("fi"), "fi");
    return ScriptStatus::yes;
  }

  ScriptStatus cases(bool live) {
    if (ended()) fault("a word is missing");
    const std::string text = live ? expand_text(token().text, variables_) : "";
    ++at_;
    skip_lines();
    need(take_word("in"), "in");
    bool open = live && !has_unknown(text);
    for (skip_lines(); !take_word("esac"); skip_lines()) {
      take_mark("(");
      bool matched = false;
      do {
        if (ended() || token().kind != TokenKind::word) fault("a pattern is missing");
        matched = matched || (open && matches_pattern(token().text, text, variables_));
        ++at_;
      } while (take_mark("|"));
      need(take_mark(")"), ")");
      list(matched);
      open = open && !matched;
      take_mark(";;");
    }
    return ScriptStatus::yes;
  }

  ScriptStatus each(bool live) {
    if (ended() || !is_variable_name(token().text)) fault("a loop needs a variable");
    const std::string name = token().text;
    ++at_;
    skip_lines();
    std::vector<std::string> words;
    if (take_word("in"))
      for (; !ended() && token().kind == TokenKind::word; ++at_)
        if (live) append(words, expand_words(token().text, variables_));
    skip_lines();
    need(take_word("do"), "do");
    const std::size_t body = at_;
    list(false);
    for (const std::string& word : words) {
      if (leaving_ != Leaving::no) break;
      variables_.values[name] = {word};
      at_ = body;
      list(true);
      if (leaving_ == Leaving::next_turn) leaving_ = Leaving::no;
    }
    if (leaving_ == Leaving::loop) leaving_ = Leaving::no;
    need(take_word("done"), "done");
    return ScriptStatus::yes;
  }

  // How often a loop runs that waits for something is not known: it is read, not followed.
  ScriptStatus turns(bool) {
    list(false);
    need(take_word("do"), "do");
    list(false);
    need(take_word("done"), "done");
    return ScriptStatus::yes;
  }

  ScriptStatus function(std::string name, bool keyword) {
    if (keyword) {
      if (ended()) fault("a name is missing");
      name = token().text;
    }
    ++at_;
    if (take_mark("(")) need(take_mark(")"), ")");
    skip_lines();
    functions_[name] = {tokens_, at_};
    command(false);
    return ScriptStatus::yes;
  }

  void count(const std::string& value) {
    if ((characters_ += value.size()) > kMostCharacters) fault("the script's values grow too long");
  }

  void append(std::vector<std::string>& to, std::vector<std::string> words) {
    if ((words_ += words.size()) > kMostWords) fault("the script has too many words");
    for (const std::string& word : words) count(word);
    to.insert(to.end(), std::make_move_iterator(words.begin()),
              std::make_move_iterator(words.end()));
  }

  void assign_list(const Token& token) {
    const std::string name(assigned_name(token.text));
    if (name.empty()) fault("an array has no name");
    std::vector<std::string> values;
    if (token.text.ends_with("+=")) values = variables_.values[name];
    for (const std::string& item : token.items) append(values, expand_words(item, variables_));
    variables_.values[name] = std::move(values);
  }

  ScriptStatus simple(bool live) {
    const int line = token().line;
    std::vector<std::string> words;
    std::vector<const Token*> documents;
    const std::size_t begin = at_;
    bool declares = false;
    for (; !ended() && token().kind != TokenKind::mark; ++at_) {
      const Token& one = token();
      if (one.kind == TokenKind::here) documents.push_back(&one);
      if (!live || one.kind == TokenKind::here) continue;
      if (one.kind == TokenKind::array) {
        assign_list(one);
      } else if (one.kind == TokenKind::word && (words.empty() || declares) &&
                 !assigned_name(one.text).empty()) {
        count(assign(one.text, variables_));
      } else if (one.kind == TokenKind::word) {
        append(words, expand_words(one.text, variables_));
        declares = is_one_of(words.empty() ? "" : words.front(),
                             {"export", "declare", "local", "readonly", "typeset"});
      } else {
        fault("a test is not expected");
      }
    }
    if (at_ == begin) fault(fmt::format("'{}' is not expected", token().text.substr(0, 40)));
    if (!live || words.empty()) return ScriptStatus::yes;
    const Tokens kept = tokens_;  // what runs inside may change it
    return start(std::move(words), documents, line);
  }

  ScriptStatus start(std::vector<std::string> words, const std::vector<const Token*>& documents,
                     int line) {
    while (!words.empty() &&
           is_one_of(words.front(), {"exec", "command", "time", "nohup", "builtin"}))
      words.erase(words.begin());
    if (words.empty()) return ScriptStatus::yes;
    const std::string& name = words.front();
    if (functions_.contains(name)) return call(std::move(words));
    if (name == "true" || name == ":") return ScriptStatus::yes;
    if (name == "false") return ScriptStatus::no;
    if (name == "test") return status_of_test({words.begin() + 1, words.end()});
    if (name == "[") {
      if (words.back() != "]") fault("a ] is missing");
      return status_of_test({words.begin() + 1, words.end() - 1});
    }
    if (is_one_of(name, {"exit", "return", "break", "continue"}))
      return leave(name), ScriptStatus::yes;
    if (is_one_of(name, {"echo", "printf", "cd", "mkdir", "set", "trap", "sed", "cat", "export",
                         "declare", "local", "readonly", "typeset", "pip", "pip3"}))
      return ScriptStatus::ran;
    return follow(words, documents, line);
  }

  ScriptStatus follow(const std::vector<std::string>& words,
                      const std::vector<const Token*>& documents, int line) {
    const std::string& name = words.front();
    if (name == "unset") {
      for (const std::string& word : words) variables_.values.erase(word);
      return ScriptStatus::yes;
    }
    if (name == "shift") {
      if (!variables_.arguments.empty()) variables_.arguments.erase(variables_.arguments.begin());
      return ScriptStatus::yes;
    }
    if ((name == "source" || name == ".") && words.size() > 1) return include(words[1], line);
    if (name == "eval")
      return inside(fmt::format("{}", fmt::join(words.begin() + 1, words.end(), " ")));
    if (name == "let") {
      for (std::size_t i = 1; i < words.size(); ++i) arithmetic(words[i], variables_);
      return ScriptStatus::ran;
    }
    if (const auto shell =
            std::ranges::find_if(words,
                                 [](const std::string& word) {
                                   return is_one_of(word, {"bash", "sh", "/bin/bash", "/bin/sh"});
                                 });
        shell != words.end()) {
      for (auto at = shell + 1; at + 1 < words.end(); ++at)
        if (at->starts_with('-') && !at->starts_with("--") && at->ends_with('c'))
          return inside(*(at + 1));
    }
    if (is_one_of(name, {"bash", "sh", "sbatch", "ssh", "qsub", "bsub"}))
      for (const Token* document : documents)
        inside(document->literal ? document->text : expand_text(document->text, variables_, true));
    out_.commands.push_back({line, words});
    return ScriptStatus::ran;
  }

  ScriptStatus inside(const std::string& text) {
    if (++depth_ > kMostNested) fault("too many scripts stand in each other");
    run_text(text);
    --depth_;
    return ScriptStatus::ran;
  }

  ScriptStatus include(const std::string& path, int line) {
    const auto text = included_ && !has_unknown(path) ? included_(path) : std::nullopt;
    if (!text) {
      if (out_.warnings.size() < kMostWarnings)
        out_.warnings.push_back(fmt::format("line {}: '{}' is not read: there is no such file",
                                            line, path.substr(0, 60)));
      return ScriptStatus::unknown;
    }
    inside(*text);
    if (leaving_ == Leaving::function) leaving_ = Leaving::no;
    return ScriptStatus::yes;
  }

  void leave(const std::string& word) {
    leaving_ = word == "exit"     ? Leaving::script
               : word == "return" ? Leaving::function
               : word == "break"  ? Leaving::loop
                                  : Leaving::next_turn;
  }

  ScriptStatus call(std::vector<std::string> words) {
    const auto [tokens, body] = functions_.at(words.front());
    words.erase(words.begin());
    const Tokens own = std::exchange(tokens_, tokens);
    const std::size_t at = std::exchange(at_, body);
    auto arguments = std::exchange(variables_.arguments, std::move(words));
    const bool known = std::exchange(variables_.arguments_known, true);
    command(true);
    if (leaving_ == Leaving::function) leaving_ = Leaving::no;
    variables_.arguments = std::move(arguments);
    variables_.arguments_known = known;
    tokens_ = own;
    at_ = at;
    return ScriptStatus::ran;
  }

  struct Function {
    Tokens tokens;
    std::size_t body;
  };

  const IncludedFile& included_;
  ScriptCommands& out_;
  ScriptVariables variables_;
  std::map<std::string, Function> functions_;
  int steps_ = 0;
  int depth_ = 0;
  std::size_t words_ = 0;
  std::size_t characters_ = 0;
  Leaving leaving_ = Leaving::no;
  std::string unknown_;
};

}  // namespace

ScriptCommands commands_of(const std::string& text, const IncludedFile& included) {
  ScriptCommands out;
  Runner(included, out).run_text(text);
  return out;
}

}  // namespace plait
