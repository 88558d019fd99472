#include "io/format/shell_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/error.h"

namespace plait {
namespace {

constexpr int kMostScriptSize = 1 << 28;
constexpr std::size_t kMostFurther = 1'000;    // words after a flag's first value
constexpr std::size_t kLongestValue = 65'536;  // variables that double each other grow fast

// Words as a shell would see them: split at blanks, quotes removed, comments dropped.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  char quote = 0;
  bool comment = false;
  for (const char c : text + "\n") {
    if (c == '\n') comment = false;
    if (comment) continue;
    const bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\\';
    if (quote != 0 && c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (quote == 0 && c == '#' && word.empty()) {
      comment = true;
    } else if (quote == 0 && blank) {
      if (!word.empty()) words.push_back(std::exchange(word, ""));
    } else {
      word += c;
    }
  }
  if (!word.empty()) words.push_back(word);
  return words;
}

bool is_part_of_name(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_name(std::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  return std::ranges::all_of(text, is_part_of_name);
}

template <typename Number>
bool read_all(const std::string& text, Number& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

ShellFlags::ShellFlags(std::string name, const std::string& text, char joint)
    : name_(std::move(name)), joint_(joint) {
  if (text.size() > kMostScriptBytes)
    throw InputError(name_, fmt::format("is longer than {} KiB, which no launch script is",
                                        kMostScriptBytes >> 10));
  std::string flag;  // that still waits for its value
  for (const std::string& word : words_of(text)) take(word, flag);
}

int ShellFlags::size(const std::string& flag, int fallback, int least) const {
  const auto it = values_.find(flag);
  if (it == values_.end()) return fallback;
  int value = 0;
  if (!read_all(it->second, value) || value < least || value > kMostScriptSize)
    fail_number(flag, fmt::format("must be a whole number from {} to {}", least, kMostScriptSize));
  return value;
}

int ShellFlags::required(const std::string& flag, const std::string& instead) const {
  if (has(flag) || instead.empty() || !has(instead)) {
    if (!has(flag)) throw InputError(name_, spelled(flag) + " is missing");
    return size(flag, 0);
  }
  return size(instead, 0);
}

double ShellFlags::number(const std::string& flag, double fallback) const {
  const auto it = values_.find(flag);
  if (it == values_.end()) return fallback;
  double value = -1;
  if (!read_all(it->second, value) || !(value >= 0 && value <= kMostScriptSize))
    fail_number(flag, "must be a number from 0 on");
  return value;
}

bool ShellFlags::above_zero(const std::string& flag, double fallback) const {
  const auto it = values_.find(flag);
  if (it == values_.end()) return fallback > 0;
  double value = -1;
  if (!read_all(it->second, value) || !(value >= 0 && value <= 1))
    fail_number(flag, "must be a number from 0 to 1");
  return value > 0;
}

std::string ShellFlags::text(const std::string& flag, const std::string& fallback) const {
  const auto it = values_.find(flag);
  return it == values_.end() ? fallback : it->second;
}

std::string ShellFlags::choice(const std::string& flag,
                               const std::vector<std::string_view>& names) const {
  std::string word = text(flag, std::string(names[0]));
  if (std::ranges::find(names, word) == names.end())
    fail(flag, fmt::format("unknown value '{}', must be one of {}", word.substr(0, 40),
                           fmt::join(names, ", ")));
  return word;
}

std::vector<std::string> ShellFlags::list(const std::string& flag) const {
  if (!has(flag)) return {};
  std::vector<std::string> words{values_.at(flag)};
  if (const auto more = further_.find(flag); more != further_.end())
    words.insert(words.end(), more->second.begin(), more->second.end());
  return words;
}

// A variable that nothing sets needs another repair than a wrong number.
void ShellFlags::fail_number(const std::string& flag, const std::string& wanted) const {
  const std::string value = text(flag, "").substr(0, 40);
  std::string name = value.substr(value.empty() ? 0 : 1);
  if (name.starts_with('{') && name.ends_with('}')) name = name.substr(1, name.size() - 2);
  if (value.starts_with('$') && is_name(name))
    fail(flag,
         fmt::format("is '{}', which nothing sets: put a line '{}=' with its value at the top",
                     value, name));
  if (value.find('$') != value.npos)
    fail(flag,
         fmt::format("is '{}', which is not known before it runs: write the value itself", value));
  fail(flag, fmt::format("{}, is '{}'", wanted, value));
}

std::optional<std::string> ShellFlags::variable(const std::string& name) const {
  const auto it = variables_.find(name);
  return it == variables_.end() ? std::nullopt : std::optional(it->second);
}

void ShellFlags::fill(const std::string& flag, const std::string& variable_name) {
  const std::string said = text(flag, "");
  if (!said.empty() && said.find('$') == said.npos) return;
  if (const auto value = variable(variable_name)) {
    values_[flag] = *value;
    spelled_[flag] = variable_name;
  } else {
    values_.erase(flag);
  }
}

std::string ShellFlags::spelled(const std::string& flag) const {
  if (const auto it = spelled_.find(flag); it != spelled_.end()) return it->second;
  std::string word = flag;
  std::ranges::replace(word, '-', joint_);
  return "--" + word;
}

void ShellFlags::fail(const std::string& flag, const std::string& what) const {
  throw InputError(name_ + " " + spelled(flag), what);
}

void ShellFlags::take(const std::string& word, std::string& flag) {
  const std::size_t equals = word.find('=');
  if (word.size() > 2 && word.starts_with("--") && word.find_first_of(" \n") == word.npos) {
    flag = word.substr(2, equals == word.npos ? word.npos : equals - 2);
    std::string written = "--" + flag;
    std::ranges::replace(flag, '_', '-');
    spelled_[flag] = std::move(written);
    if (values_.contains(flag) && !values_[flag].empty()) before_[flag] = values_[flag];
    values_[flag].clear();
    further_.erase(flag);
    if (equals != word.npos) set(std::exchange(flag, ""), word.substr(equals + 1));
  } else if (equals != word.npos && is_name(word.substr(0, equals))) {
    const std::string value = word.substr(equals + 1);
    variables_[word.substr(0, equals)] = filled_in(value);
    if (value.find("--") != value.npos) take_all(value, flag);
  } else if (word.find("--") != word.npos && word.find_first_of(" \n") != word.npos) {
    take_all(word, flag);
  } else if (!flag.empty()) {
    if (values_[flag].empty() && further_[flag].empty())
      set(flag, word);
    else if (further_[flag].size() < kMostFurther)
      further_[flag].push_back(filled_in(word));
  }
}

void ShellFlags::set(const std::string& flag, std::string value) {
  value = filled_in(std::move(value));
  const auto before = before_.find(flag);
  if (before != before_.end() && before->second != value) earlier_.insert(*before);
  values_[flag] = std::move(value);
}

// A quoted list of flags: MODEL_ARGS="--num-layers 24 ...".
void ShellFlags::take_all(const std::string& list, std::string& flag) {
  for (const std::string& part : words_of(list))
    if (part != list) take(part, flag);
}

// $NAME, ${NAME} and ${NAME:-default}, also in the midst of a word; what is not set stays as it is
// and is complained about when it is needed.
std::string ShellFlags::filled_in(std::string word) const {
  if (word.find('(') == word.npos)
    while (word.ends_with(')')) word.pop_back();
  std::string out;
  for (std::size_t at = 0; at < word.size();) {
    std::size_t end = at + 1;
    if (word[at] == '$' && word[end] == '{') {
      const std::size_t close = word.find('}', end);
      end = close == word.npos ? word.size() : close + 1;
      out += close == word.npos ? word.substr(at) : value_of(word.substr(at, end - at));
    } else if (word[at] == '$') {
      const bool named = is_name(word.substr(end, 1));
      while (named && end < word.size() && is_part_of_name(word[end])) ++end;
      out += value_of(word.substr(at, end - at));
    } else {
      out += word[at];
    }
    if (out.size() > kLongestValue)
      throw InputError(name_, fmt::format("a value is longer than {} characters once its variables "
                                          "are filled in",
                                          kLongestValue));
    at = end;
  }
  return out;
}

// Of "$NAME" or "${NAME:-default}"; the same text when it is not set.
std::string ShellFlags::value_of(const std::string& reference) const {
  std::string fallback = reference;
  std::string name = reference.substr(1);
  if (name.starts_with('{')) name = name.substr(1, name.size() - 2);
  if (const std::size_t dash = name.find(":-"); dash != name.npos) {
    fallback = name.substr(dash + 2);
    name.resize(dash);
  }
  return variable(name).value_or(fallback);
}

}  // namespace plait
