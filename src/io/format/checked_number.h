#pragma once

#include <optional>
#include <string_view>

namespace plait {

// The one range of quantities in files: 0, or a magnitude from 1e-30 to 1e30. No product of some of
// them overflows. What is given in a unit with a prefix (GB, us, hours) is written to plans in
// plain units and must stay in the range: from 1e-18 to 1e18. So what is read from one file can be
// written to another and read again.
inline constexpr double kLargestQuantity = 1e30;
inline constexpr double kSmallestQuantity = 1e-30;
inline constexpr double kLargestWithPrefix = 1e18;
inline constexpr double kSmallestWithPrefix = 1e-18;

// Whether a key of JSON says that its value has such a unit: "latency_us", "memory_GiB".
bool has_prefixed_unit(std::string_view key);

// The value, which a conversion of units may have rounded beyond the range, back in it; nothing
// when it is not finite or really outside.
std::optional<double> in_range(double value, double smallest = kSmallestQuantity,
                               double largest = kLargestQuantity);

// A whole text that is a number within the range; nothing for others.
std::optional<double> checked_number(std::string_view text);

}  // namespace plait
