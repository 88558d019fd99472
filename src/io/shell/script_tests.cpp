#include "io/shell/script_tests.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "io/shell/script_tokens.h"

namespace plait {
namespace {

ScriptStatus as_status(bool value) { return value ? ScriptStatus::yes : ScriptStatus::no; }

ScriptStatus negated(ScriptStatus status) {
  if (status == ScriptStatus::yes) return ScriptStatus::no;
  return status == ScriptStatus::no ? ScriptStatus::yes : ScriptStatus::unknown;
}

// What a shell would see: a variable that nothing has set is empty; nothing where that is not
// known.
std::optional<std::string> seen(const std::string& word) {
  if (!has_unknown(word)) return word;
  std::string_view name = word;
  name.remove_prefix(1);
  if (name.starts_with('{') && name.ends_with('}')) name = name.substr(1, name.size() - 2);
  if (word[0] == '$' && is_variable_name(name)) return std::string();
  return std::nullopt;
}

std::optional<long long> whole(const std::optional<std::string>& text) {
  long long value = 0;
  if (!text) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return value;
}

std::optional<bool> compared(std::string_view op, long long a, long long b) {
  if (op == "-eq") return a == b;
  if (op == "-ne") return a != b;
  if (op == "-lt") return a < b;
  if (op == "-le") return a <= b;
  if (op == "-gt") return a > b;
  if (op == "-ge") return a >= b;
  return std::nullopt;
}

ScriptStatus of_two(const std::string& op, const std::string& word) {
  const auto text = seen(word);
  if ((op != "-z" && op != "-n") || !text) return ScriptStatus::unknown;
  return as_status(text->empty() == (op == "-z"));
}

ScriptStatus of_three(const std::string& left, const std::string& op, const std::string& right) {
  const auto a = seen(left);
  const auto b = seen(right);
  if (!a || !b) return ScriptStatus::unknown;
  if (op == "=" || op == "==") return as_status(*a == *b);
  if (op == "!=") return as_status(*a != *b);
  const auto x = whole(a);
  const auto y = whole(b);
  const auto value = x && y ? compared(op, *x, *y) : std::nullopt;
  return value ? as_status(*value) : ScriptStatus::unknown;
}

ScriptStatus both(ScriptStatus a, ScriptStatus b) {
  if (a == ScriptStatus::no || b == ScriptStatus::no) return ScriptStatus::no;
  return a == ScriptStatus::yes && b == ScriptStatus::yes ? ScriptStatus::yes
                                                          : ScriptStatus::unknown;
}

ScriptStatus either(ScriptStatus a, ScriptStatus b) {
  return negated(both(negated(a), negated(b)));
}

bool matches(std::string_view pattern, const std::vector<bool>& plain, std::size_t p,
             std::string_view text, int& budget) {
  for (; p < pattern.size(); ++p) {
    if (--budget < 0) return false;
    if (pattern[p] == '*' && !plain[p]) {
      for (std::size_t skip = 0; skip <= text.size(); ++skip)
        if (matches(pattern, plain, p + 1, text.substr(skip), budget)) return true;
      return false;
    }
    if (text.empty()) return false;
    if (text[0] != pattern[p] && (pattern[p] != '?' || plain[p])) return false;
    text.remove_prefix(1);
  }
  return text.empty();
}

// [[ .. ]] by its grammar: or of ands of comparisons.
class Condition {
 public:
  Condition(const std::vector<std::string>& items, ScriptVariables& variables)
      : items_(items), variables_(variables) {}

  ScriptStatus all() {
    const ScriptStatus status = any_of();
    return at_ == items_.size() ? status : ScriptStatus::unknown;
  }

 private:
  bool take(std::string_view item) {
    if (at_ >= items_.size() || items_[at_] != item) return false;
    ++at_;
    return true;
  }

  ScriptStatus any_of() {
    ScriptStatus status = all_of();
    while (take("||")) status = either(status, all_of());
    return status;
  }

  ScriptStatus all_of() {
    ScriptStatus status = one();
    while (take("&&")) status = both(status, one());
    return status;
  }

  ScriptStatus one() {
    if (++depth_ > 50 || at_ >= items_.size()) return give_up();
    if (take("!")) return negated(one());
    if (take("(")) {
      const ScriptStatus status = any_of();
      return take(")") ? status : give_up();
    }
    std::vector<std::string> part;
    while (at_ < items_.size() && items_[at_] != "&&" && items_[at_] != "||" && items_[at_] != ")")
      part.push_back(items_[at_++]);
    return comparison(part);
  }

  ScriptStatus give_up() {
    at_ = items_.size();
    return ScriptStatus::unknown;
  }

  ScriptStatus comparison(const std::vector<std::string>& part) {
    if (part.size() == 1) return of_two("-n", expand_text(part[0], variables_));
    if (part.size() == 2) return of_two(part[0], expand_text(part[1], variables_));
    if (part.size() != 3) return ScriptStatus::unknown;
    const std::string left = expand_text(part[0], variables_);
    const std::string right = expand_text(part[2], variables_);
    const bool equal = part[1] == "==" || part[1] == "=" || part[1] == "!=";
    if (!equal) return of_three(left, part[1], right);
    const auto text = seen(left);
    if (!text || !seen(right)) return ScriptStatus::unknown;
    if (has_unknown(right)) return of_three(left, part[1], right);
    return as_status(matches_pattern(part[2], *text, variables_) == (part[1] != "!="));
  }

  const std::vector<std::string>& items_;
  ScriptVariables& variables_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

ScriptStatus status_of_test(const std::vector<std::string>& words) {
  if (words.size() > 100) return ScriptStatus::unknown;
  for (const char* joint : {"-o", "-a"})
    for (std::size_t i = 1; i + 1 < words.size(); ++i)
      if (words[i] == joint) {
        const ScriptStatus a = status_of_test({words.begin(), words.begin() + i});
        const ScriptStatus b = status_of_test({words.begin() + i + 1, words.end()});
        return joint == std::string_view("-o") ? either(a, b) : both(a, b);
      }
  if (words.empty()) return ScriptStatus::no;
  if (words.size() > 1 && words[0] == "!")
    return negated(status_of_test({words.begin() + 1, words.end()}));
  if (words.size() == 1) return of_two("-n", words[0]);
  if (words.size() == 2) return of_two(words[0], words[1]);
  return words.size() == 3 ? of_three(words[0], words[1], words[2]) : ScriptStatus::unknown;
}

ScriptStatus status_of_condition(const std::vector<std::string>& items,
                                 ScriptVariables& variables) {
  return Condition(items, variables).all();
}

bool matches_pattern(const std::string& pattern, const std::string& text,
                     ScriptVariables& variables) {
  // Characters that come out of quotes or variables are themselves.
  std::string letters;
  std::vector<bool> plain;
  for (std::size_t at = 0; at < pattern.size();) {
    const char c = pattern[at];
    const bool wild = c == '*' || c == '?';
    std::size_t end = at + 1;
    if (c == '\'' || c == '"' || c == '$' || c == '`')
      end = end_of_nested(pattern, at);
    else if (c == '\\')
      end = std::min(at + 2, pattern.size());
    while (c == '$' && end < pattern.size() && is_variable_name("x" + pattern.substr(end, 1)))
      ++end;
    const std::string part =
        wild ? std::string(1, c) : expand_text(pattern.substr(at, end - at), variables);
    letters += part;
    plain.insert(plain.end(), part.size(), !wild);
    at = end;
  }
  int budget = 100'000;
  return matches(letters, plain, 0, text, budget);
}

}  // namespace plait
