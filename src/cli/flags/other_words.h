#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/flags/command.h"

namespace plait {

// How plait says what people look for under the name of a flag that it does not have; "" where
// nothing is known. Begins with ": ".
std::string said_otherwise(const std::vector<FlagGroup>& groups, std::string_view name);

// The same of a word that stands without a flag.
std::string word_otherwise(const std::vector<FlagGroup>& groups, std::string_view word);

}  // namespace plait
