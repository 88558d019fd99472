#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace plait {

// The one range of quantities in files: 0, or a magnitude from 1e-30 to 1e30. No product of some of
// them overflows, and what is read from one file can be written to another and read again.
inline constexpr double kLargestQuantity = 1e30;
inline constexpr double kSmallestQuantity = 1e-30;

// The value, which a conversion of units may have rounded beyond the range, back in it; nothing
// when it is not finite or really outside.
std::optional<double> in_range(double value);

// A whole text that is a number within the range; nothing for others.
std::optional<double> checked_number(std::string_view text);

}  // namespace plait
