#pragma once

#include <string>
#include <string_view>

namespace plait {

// The flag that sets a field of a request: "--tp" for "tensor"; "" = there is none.
std::string_view flag_of(std::string_view field);

// A text of the layers below with flags in place of its fields, which stand between backquotes:
//   "`stages`: has 2 stages, but `pipeline` is 3"  ->  "--stages: has 2 stages, but --pp is 3"
std::string in_flags(std::string_view text);

}  // namespace plait
