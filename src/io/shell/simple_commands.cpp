// What a simple command does to a script: assignments, the words of a shell, and what it starts.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "io/shell/script_runner.h"
#include "io/shell/script_tokens.h"

namespace plait {
namespace {

constexpr std::size_t kMostWords = 100'000;
constexpr std::size_t kMostCharacters = 1 << 25;  // of all values that were ever set

}  // namespace

void ScriptRunner::count(const std::string& value) {
  if ((characters_ += value.size()) > kMostCharacters) fault("the script's values grow too long");
}

void ScriptRunner::append(std::vector<std::string>& to, std::vector<std::string> words) {
  if ((words_ += words.size()) > kMostWords) fault("the script has too many words");
  for (const std::string& word : words) count(word);
  to.insert(to.end(), std::make_move_iterator(words.begin()), std::make_move_iterator(words.end()));
}

void ScriptRunner::assign_list(const Token& token) {
  const std::string name(assigned_name(token.text));
  if (name.empty()) fault("an array has no name");
  std::vector<std::string> values;
  if (token.text.ends_with("+=")) values = variables_.values[name];
  for (const std::string& item : token.items) {
    const std::size_t key = item.starts_with('[') ? item.find("]=") : item.npos;
    if (key == item.npos)
      append(values, expand_words(item, variables_));
    else
      count(variables_.tables[name][expand_text(item.substr(1, key - 1), variables_)] =
                expand_text(item.substr(key + 2), variables_));
  }
  variables_.values[name] = std::move(values);
}

ScriptStatus ScriptRunner::simple(bool live) {
  const int line = token().line;
  std::vector<std::string> words;
  std::vector<const Token*> documents;
  const std::size_t begin = at_;
  bool declares = false;
  std::optional<std::string> into;
  for (; !ended() && token().kind != TokenKind::mark; ++at_) {
    const Token& one = token();
    if (one.kind == TokenKind::here) documents.push_back(&one);
    if (one.into) into = expand_text(*one.into, variables_);
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
  if (into && !documents.empty() && words.front() == "cat") {
    count(written_[*into] = text_of(*documents.back()));
    return ScriptStatus::ran;
  }
  Printed elsewhere;
  Printed* const here = into && printed_ ? std::exchange(printed_, &elsewhere) : printed_;
  const ScriptStatus status = start(std::move(words), documents, line);
  printed_ = here;
  return status;
}

ScriptStatus ScriptRunner::start(std::vector<std::string> words,
                                 const std::vector<const Token*>& documents, int line) {
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
  if (name == "cd") return change_folder(words), ScriptStatus::ran;
  if (name == "set") return set_arguments(words), ScriptStatus::ran;
  if (is_one_of(name, {"export", "declare", "local", "readonly", "typeset"})) {
    for (const std::string& word : words)  // declare "${NAME^^}=$VALUE"
      if (const std::string variable(assigned_name(word));
          !variable.empty() && word.starts_with(variable + "="))
        variables_.values[variable] = {word.substr(variable.size() + 1)};
    return ScriptStatus::ran;
  }
  if (is_one_of(name, {"mkdir", "trap"})) return ScriptStatus::ran;
  if (const auto text = printed(words)) {
    count(*text);
    if (printed_) printed_->text += *text;
    return ScriptStatus::ran;
  }
  if (printed_ && name == "cat" && words.size() == 1 && !documents.empty()) {
    printed_->text += text_of(*documents.back());
    return ScriptStatus::ran;
  }
  if (printed_) printed_->known = false;
  if (is_one_of(name, {"sed", "cat", "pip", "pip3", "echo", "printf"})) return ScriptStatus::ran;
  return follow(words, documents, line);
}

ScriptStatus ScriptRunner::follow(const std::vector<std::string>& words,
                                  const std::vector<const Token*>& documents, int line) {
  const std::string& name = words.front();
  if (name == "unset") {
    for (const std::string& word : words) variables_.values.erase(word);
    return ScriptStatus::yes;
  }
  if (name == "shift") {
    auto& arguments = variables_.arguments;
    std::size_t number = words.size() > 1 ? value_of_word(words[1], variables_).value_or(0) : 1;
    number = std::min(number, arguments.size());
    arguments.erase(arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(number));
    return ScriptStatus::yes;
  }
  if ((name == "source" || name == ".") && words.size() > 1) return include(words[1], line);
  if (name == "eval")
    return inside(fmt::format("{}", fmt::join(words.begin() + 1, words.end(), " ")));
  if (name == "let") {
    for (std::size_t i = 1; i < words.size(); ++i) value_of_word(words[i], variables_);
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
  if (name == "read") return take(words, documents);
  if (is_one_of(name, {"bash", "sh", "sbatch", "ssh", "qsub", "bsub"}))
    for (const Token* document : documents) inside(text_of(*document));
  if (script_file(words)) return ScriptStatus::ran;
  out_.commands.push_back({line, words});
  return ScriptStatus::ran;
}

ScriptStatus ScriptRunner::inside(const std::string& text) {
  if (++depth_ > kMostScriptNesting) fault("too many scripts stand in each other");
  run_text(text);
  --depth_;
  return ScriptStatus::ran;
}

void ScriptRunner::leave(const std::string& word) {
  leaving_ = word == "exit"     ? Leaving::script
             : word == "return" ? Leaving::function
             : word == "break"  ? Leaving::loop
                                : Leaving::next_turn;
}

ScriptStatus ScriptRunner::call(std::vector<std::string> words) {
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

}  // namespace plait
