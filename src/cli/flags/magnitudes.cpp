#include "cli/flags/magnitudes.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace plait {

bool take_unit(std::string& amount, std::span<const std::string_view> units) {
  for (const std::string_view unit : units) {
    if (!amount.ends_with(unit)) continue;
    amount.resize(amount.size() - unit.size());
    amount.resize(amount.find_last_not_of(" -_") + 1);
    return true;
  }
  return false;
}

int power_of_thousand(std::string_view magnitude) {
  static constexpr std::pair<std::string_view, int> kNames[] = {
      {"", 0},  {"k", 1},  {"thousand", 1}, {"m", 2}, {"mn", 2}, {"million", 2},  {"b", 3},
      {"g", 3}, {"bn", 3}, {"billion", 3},  {"t", 4}, {"tn", 4}, {"trillion", 4}, {"p", 5}};
  std::string name(magnitude.substr(std::min(magnitude.find_first_not_of(' '), magnitude.size())));
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const auto& [known, power] : kNames)
    if (known == name) return power;
  return -1;
}

std::vector<std::string> magnitudes_and(std::vector<std::string> units) {
  for (const char* name : {"k", "K", "M", "B", "T", "thousand", "million", "billion", "trillion"})
    units.emplace_back(name);
  return units;
}

}  // namespace plait
