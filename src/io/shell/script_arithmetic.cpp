// What stands in $(( .. )): whole numbers, variables, and C's operators on them.
#include <charconv>
#include <utility>

#include "io/shell/script_tokens.h"
#include "io/shell/script_words.h"

namespace plait {
namespace {

using Value = std::optional<long long>;

struct Operator {
  std::string_view text;
  int strength;
};
constexpr Operator kOperators[] = {{"||", 1}, {"&&", 2}, {"==", 3}, {"!=", 3}, {"<=", 4},
                                   {">=", 4}, {"<", 4},  {">", 4},  {"+", 5},  {"-", 5},
                                   {"*", 6},  {"/", 6},  {"%", 6}};

Value apply(std::string_view op, long long a, long long b) {
  long long out = 0;
  if (op == "||") return a != 0 || b != 0;
  if (op == "&&") return a != 0 && b != 0;
  if (op == "==") return a == b;
  if (op == "!=") return a != b;
  if (op == "<=") return a <= b;
  if (op == ">=") return a >= b;
  if (op == "<") return a < b;
  if (op == ">") return a > b;
  if (op == "+") return __builtin_add_overflow(a, b, &out) ? Value() : out;
  if (op == "-") return __builtin_sub_overflow(a, b, &out) ? Value() : out;
  if (op == "*") return __builtin_mul_overflow(a, b, &out) ? Value() : out;
  if (b == 0 || b == -1) return std::nullopt;
  return op == "/" ? a / b : a % b;
}

// Reads on where it left off; nothing as soon as something is not known or not understood.
class Calculator {
 public:
  Calculator(std::string_view text, const ScriptVariables& variables)
      : text_(text), variables_(variables) {}

  Value all() {
    const Value value = choice();
    skip();
    return at_ == text_.size() ? value : std::nullopt;
  }

 private:
  void skip() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) ++at_;
  }
  bool take(std::string_view what) {
    skip();
    if (!text_.substr(at_).starts_with(what)) return false;
    at_ += what.size();
    return true;
  }

  Value choice() {
    const Value value = operation(1);
    if (!value || !take("?")) return value;
    const Value yes = choice();
    if (!take(":")) return std::nullopt;
    const Value no = choice();
    return *value != 0 ? yes : no;
  }

  const Operator* next_operator(int least) {
    skip();
    for (const Operator& op : kOperators)
      if (text_.substr(at_).starts_with(op.text)) return op.strength >= least ? &op : nullptr;
    return nullptr;
  }

  Value operation(int least) {
    Value left = operand();
    while (left) {
      const Operator* op = next_operator(least);
      if (op == nullptr) break;
      at_ += op->text.size();
      const Value right = operation(op->strength + 1);
      left = right ? apply(op->text, *left, *right) : std::nullopt;
    }
    return left;
  }

  Value operand() {
    if (++depth_ > 100) return std::nullopt;
    Value out;
    if (take("(")) {
      out = choice();
      if (!take(")")) out = std::nullopt;
    } else if (take("-")) {
      if (const Value value = operand()) out = apply("-", 0, *value);
    } else if (take("!")) {
      if (const Value value = operand()) out = *value == 0;
    } else {
      out = atom();
    }
    --depth_;
    return out;
  }

  Value atom() {
    skip();
    std::size_t end = at_;
    while (end < text_.size() &&
           (is_variable_name(text_.substr(end, 1)) || (text_[end] >= '0' && text_[end] <= '9')))
      ++end;
    const std::string_view name = text_.substr(std::exchange(at_, end), end - at_);
    return is_variable_name(name) ? variable(std::string(name)) : number(name);
  }

  static Value number(std::string_view text) {
    long long value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? Value(value) : std::nullopt;
  }

  Value variable(const std::string& name) const {
    const auto at = variables_.values.find(name);
    if (at == variables_.values.end() || at->second.size() != 1) return std::nullopt;
    return number(at->second.front());
  }

  std::string_view text_;
  const ScriptVariables& variables_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

// "X = .." and "X += ..": the name, and the value that the right side stands for.
Value assigned(const std::string& text, ScriptVariables& variables) {
  std::size_t begin = text.find_first_not_of(" \t\n");
  if (begin == text.npos) return std::nullopt;
  std::size_t end = begin;
  while (end < text.size() && is_variable_name("x" + text.substr(end, 1))) ++end;
  const std::string name = text.substr(begin, end - begin);
  end = text.find_first_not_of(" \t", end);
  if (!is_variable_name(name) || end == text.npos) return std::nullopt;
  const std::string rest = text.substr(end);
  std::string value;
  if (rest == "++" || rest == "--")
    value = name + rest.substr(1) + "1";
  else if (rest.size() > 2 && rest[1] == '=' &&
           std::string_view("+-*/%").find(rest[0]) != std::string_view::npos)
    value = name + rest.substr(0, 1) + "(" + rest.substr(2) + ")";
  else if (rest.size() > 1 && rest[0] == '=' && rest[1] != '=')
    value = rest.substr(1);
  else
    return std::nullopt;
  const Value result = Calculator(value, variables).all();
  if (result)
    variables.values[name] = {std::to_string(*result)};
  else
    variables.values.erase(name);
  return result;
}

}  // namespace

std::optional<long long> arithmetic(const std::string& text, ScriptVariables& variables) {
  const std::string filled = expand_text(text, variables, true);
  if (const Value value = assigned(filled, variables)) return value;
  return Calculator(filled, variables).all();
}

std::optional<long long> value_of_word(const std::string& word, ScriptVariables& variables) {
  return has_unknown(word) ? std::nullopt : arithmetic(word, variables);
}

}  // namespace plait
