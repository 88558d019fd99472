#include "validation/cells/cell_values.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <vector>

namespace plait {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

const std::vector<Unit>& units_of(CellKind kind) {
  static const std::vector<Unit> none;
  static const std::vector<Unit> counts{{"gpus", 1},   {"gpu", 1},     {"nodes", 1}, {"node", 1},
                                        {"layers", 1}, {"samples", 1}, {"way", 1},   {"x", 1}};
  static const std::vector<Unit> tokens{{"tokens", 1}, {"k", 1024}, {"ki", 1024}};
  static const std::vector<Unit> seconds{
      {"s", 1},        {"sec", 1},     {"secs", 1},     {"second", 1},         {"seconds", 1},
      {"ms", 1e-3},    {"msec", 1e-3}, {"us", 1e-6},    {"min", 60},           {"mins", 60},
      {"minutes", 60}, {"h", 3600},    {"hours", 3600}, {"milliseconds", 1e-3}};
  // Whatever tables call it: those that can be checked mean GiB and MiB (docs/accuracy.md).
  static const std::vector<Unit> gib{{"gib", 1},         {"gb", 1},         {"g", 1},
                                     {"mib", 1 / 1024.}, {"mb", 1 / 1024.}, {"m", 1 / 1024.}};
  static const std::vector<Unit> billion{{"b", 1},    {"bn", 1},         {"billion", 1},
                                         {"m", 1e-3}, {"million", 1e-3}, {"t", 1e3}};
  static const std::vector<Unit> rate{{"k", 1e3}, {"m", 1e6}};
  static const std::vector<Unit> batch{{"tokens", 1}, {"k", 0x1p10}, {"m", 0x1p20}};
  static const std::vector<Unit> percent{{"%", 1}, {"percent", 1}};
  switch (kind) {
    case CellKind::count:
      return counts;
    case CellKind::tokens:
      return tokens;
    case CellKind::seconds:
      return seconds;
    case CellKind::gib:
      return gib;
    case CellKind::billion:
      return billion;
    case CellKind::rate:
      return rate;
    case CellKind::batch:
      return batch;
    case CellKind::percent:
      return percent;
  }
  return none;
}

const Unit* find_unit(std::string_view name, CellKind kind) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  for (const Unit& unit : units_of(kind))
    if (unit.name == lower) return &unit;
  return nullptr;
}

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

void skip_blanks(std::string_view& text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
}

bool skip(std::string_view& text, std::string_view sign) {
  if (!text.starts_with(sign)) return false;
  text.remove_prefix(sign.size());
  return true;
}

// "12,345.6" without its commas, where they are three digits apart; else the text as it is. What
// follows the number stays.
std::string without_thousands(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && is_digit(text[at])) ++at;
  std::string out(text.substr(0, at));
  if (at == 0 || at > 3) return std::string(text);
  const auto group = [&] {
    return at + 3 < text.size() && text[at] == ',' && is_digit(text[at + 1]) &&
           is_digit(text[at + 2]) && is_digit(text[at + 3]) &&
           (at + 4 >= text.size() || !is_digit(text[at + 4]));
  };
  while (group()) {
    out += text.substr(at + 1, 3);
    at += 4;
  }
  return out + std::string(text.substr(at));
}

// What may follow a number and its unit and changes nothing: "(approx)", "; assumed", "per device".
bool is_remark(std::string_view text) {
  skip_blanks(text);
  if (text.empty() || text == "*" || text == "†") return true;
  for (const std::string_view begin : {"(", "[", "; ", ", ", "±", "+-", "+/-"})
    if (text.starts_with(begin)) return true;
  const std::string_view word = text.substr(0, text.find_first_of(" ,;("));
  for (const std::string_view known :
       {"per", "each", "approx", "approx.", "approximately", "assumed", "about", "average", "avg",
        "mean", "median", "estimated", "est.", "measured"})
    if (word == known) return true;
  return false;
}

}  // namespace

bool is_unit(std::string_view unit, CellKind kind) { return find_unit(unit, kind) != nullptr; }

std::optional<double> read_cell(std::string_view text, CellKind kind) {
  if (!skip(text, "~")) skip(text, "≈");
  skip_blanks(text);
  const std::string plain = without_thousands(text);
  double value = 0;
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), value);
  if (error != std::errc() || !std::isfinite(value)) return std::nullopt;
  std::string_view rest(end, plain.data() + plain.size() - end);
  skip_blanks(rest);
  std::size_t length = 0;
  while (length < rest.size() &&
         (std::isalpha(static_cast<unsigned char>(rest[length])) != 0 || rest[length] == '%'))
    ++length;
  const Unit* unit = length > 0 ? find_unit(rest.substr(0, length), kind) : nullptr;
  if (unit != nullptr) rest.remove_prefix(length);
  if (!is_remark(rest)) return std::nullopt;
  if (unit != nullptr) return value * unit->factor;
  constexpr double kSingle = 1e5;
  return kind == CellKind::billion && value >= kSingle ? value / 1e9 : value;
}

}  // namespace plait
