#include "io/shell/shell_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "io/shell/script_runner.h"
#include "io/shell/script_tokens.h"

namespace plait {
namespace {

constexpr int kMostSteps = 20'000;  // commands, those of loops each time
constexpr int kMostTurns = 200;     // of a loop

}  // namespace

void ScriptRunner::run_text(const std::string& text) {
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

ScriptStatus ScriptRunner::list(bool live) {
  ScriptStatus status = ScriptStatus::yes;
  for (skip_lines(); !closes_list(); skip_lines()) {
    const ScriptStatus one = chain(live && leaving_ == Leaving::no);
    if (live) status = one;
    if (!take_mark("&") && !is_mark("\n") && !is_mark(";") && !closes_list())
      fault(fmt::format("'{}' is not expected", token().text.substr(0, 40)));
  }
  return status;
}

ScriptStatus ScriptRunner::chain(bool live) {
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

ScriptStatus ScriptRunner::pipeline(bool live) {
  const bool turned = take_word("!");
  ScriptStatus status = command(live);
  while (take_mark("|")) {
    take_mark("&");
    while (is_mark("\n")) ++at_;
    if (!pipe(live)) command(live);
    status = ScriptStatus::ran;
  }
  if (!turned) return status;
  if (status == ScriptStatus::yes) return ScriptStatus::no;
  return status == ScriptStatus::no ? ScriptStatus::yes : ScriptStatus::unknown;
}

ScriptStatus ScriptRunner::command(bool live) {
  if (ended()) fault("a command is missing");
  if (++steps_ > kMostSteps) fault("the script runs for too long");
  if (++depth_ > kMostScriptNesting) fault("too many commands stand in each other");
  const ScriptStatus status = any_command(live);
  while (!ended() && token().kind == TokenKind::here) ++at_;  // done <<EOF
  --depth_;
  return status;
}

ScriptStatus ScriptRunner::any_command(bool live) {
  const Token& first = token();
  if (first.kind == TokenKind::test) return ++at_, condition(first, live);
  if (first.kind == TokenKind::arithmetic) return ++at_, sum(first, live);
  if (take_mark("(")) return group(live, ")");
  if (first.kind == TokenKind::word) {
    if (take_word("{")) return group(live, "}");
    if (take_word("if")) return branches(live);
    if (take_word("case")) return cases(live);
    if (take_word("for") || take_word("select")) return each(live);
    if (take_word("while")) return turns(live, ScriptStatus::yes);
    if (take_word("until")) return turns(live, ScriptStatus::no);
    if (take_word("function")) return function(std::string(first.text), true);
    if (at_ + 2 < tokens_->size() && (*tokens_)[at_ + 1].text == "(" &&
        (*tokens_)[at_ + 1].kind == TokenKind::mark && (*tokens_)[at_ + 2].text == ")")
      return function(first.text, false);
  }
  return simple(live);
}

ScriptStatus ScriptRunner::condition(const Token& test, bool live) {
  return live ? status_of_condition(test.items, variables_) : ScriptStatus::unknown;
}

ScriptStatus ScriptRunner::sum(const Token& text, bool live) {
  if (!live) return ScriptStatus::unknown;
  const auto value = arithmetic(text.text, variables_);
  if (!value) return ScriptStatus::unknown;
  return *value != 0 ? ScriptStatus::yes : ScriptStatus::no;
}

ScriptStatus ScriptRunner::group(bool live, const char* close) {
  const ScriptStatus status = list(live);
  need(close[0] == ')' ? take_mark(")") : take_word("}"), close);
  return status;
}

void ScriptRunner::note_unknown(const Token& where) {
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

void ScriptRunner::warn_of_branch(std::size_t begin) {
  if (unknown_.empty()) return;
  const std::string warning = std::exchange(unknown_, "");
  const bool matters =
      std::any_of(tokens_->begin() + begin, tokens_->begin() + at_, [](const Token& t) {
        return t.kind == TokenKind::array || t.text.find("--") != t.text.npos ||
               (t.kind == TokenKind::word && !assigned_name(t.text).empty());
      });
  if (matters && out_.warnings.size() < kMostScriptWarnings) out_.warnings.push_back(warning);
}

ScriptStatus ScriptRunner::branches(bool live) {
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

ScriptStatus ScriptRunner::cases(bool live) {
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

ScriptStatus ScriptRunner::each(bool live) {
  if (!ended() && token().kind == TokenKind::arithmetic) return counted(live);
  if (ended() || !is_variable_name(token().text)) fault("a loop needs a variable");
  const std::string name = token().text;
  ++at_;
  skip_lines();
  std::vector<std::string> words;
  if (take_word("in"))
    for (; !ended() && token().kind == TokenKind::word; ++at_)
      if (live) append(words, in_braces(token().text, variables_));
  skip_lines();
  need(take_word("do"), "do");
  const std::size_t body = at_;
  list(false);
  for (const std::string& word : words) {
    if (leaving_ != Leaving::no) break;
    variables_.values[name] = {word};
    turn(body);
  }
  if (leaving_ == Leaving::loop) leaving_ = Leaving::no;
  need(take_word("done"), "done");
  return ScriptStatus::yes;
}

void ScriptRunner::turn(std::size_t body) {
  at_ = body;
  list(true);
  if (leaving_ == Leaving::next_turn) leaving_ = Leaving::no;
}

ScriptStatus ScriptRunner::counted(bool live) {
  std::vector<std::string> parts(1);
  for (const char c : token().text) {
    if (c == ';')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  if (parts.size() != 3) fault("a loop needs three parts");
  ++at_;
  skip_lines();
  need(take_word("do"), "do");
  const std::size_t body = at_;
  list(false);
  if (live) arithmetic(parts[0], variables_);
  for (int i = 0; live && i < kMostTurns && leaving_ == Leaving::no; ++i) {
    if (arithmetic(parts[1], variables_).value_or(0) == 0) break;
    turn(body);
    arithmetic(parts[2], variables_);
  }
  if (leaving_ == Leaving::loop) leaving_ = Leaving::no;
  need(take_word("done"), "done");
  return ScriptStatus::yes;
}

ScriptStatus ScriptRunner::turns(bool live, ScriptStatus goes_on) {
  const std::size_t head = at_;
  list(false);
  need(take_word("do"), "do");
  const std::size_t body = at_;
  list(false);
  need(take_word("done"), "done");
  if (!live) return ScriptStatus::yes;
  const std::size_t end = at_;
  auto lines = !ended() && token().kind == TokenKind::here ? lines_of(token()) : lines_;
  const auto outer = std::exchange(lines_, std::move(lines));
  for (int i = 0; i < kMostTurns && leaving_ == Leaving::no; ++i) {
    at_ = head;
    if (list(true) != goes_on || leaving_ != Leaving::no) break;
    turn(body);
  }
  if (leaving_ == Leaving::loop) leaving_ = Leaving::no;
  lines_ = outer;
  at_ = end;
  return ScriptStatus::yes;
}

ScriptStatus ScriptRunner::function(std::string name, bool keyword) {
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

ScriptCommands commands_of(const std::string& text, const IncludedFile& included,
                           const std::string& path) {
  ScriptCommands out;
  ScriptRunner(included, out, path).run_text(text);
  return out;
}

}  // namespace plait
