#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

// Takes one of the units off the end of "4M tokens" or "4M-tokens", with what joins them; false
// when it ends with none.
bool take_unit(std::string& amount, std::span<const std::string_view> units);

// 0 for "", 1 for "k", 2 for "M" or "million" ... 5 for "P"; -1 for anything else.
int power_of_thousand(std::string_view magnitude);

// Words that may follow a number as a word of their own: "4 M tokens".
std::vector<std::string> magnitudes_and(std::vector<std::string> units);

}  // namespace plait
