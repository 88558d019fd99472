#include "io/format/checked_number.h"

#include <charconv>
#include <cmath>

namespace plait {
namespace {

constexpr double kRounding = 1e-9;  // of some conversions, one after the other

}  // namespace

std::optional<double> in_range(double value) {
  const double size = std::abs(value);
  if (value == 0 || (size >= kSmallestQuantity && size <= kLargestQuantity)) return value;
  if (size > kLargestQuantity && size <= kLargestQuantity * (1 + kRounding))
    return std::copysign(kLargestQuantity, value);
  if (size < kSmallestQuantity && size >= kSmallestQuantity * (1 - kRounding))
    return std::copysign(kSmallestQuantity, value);
  return std::nullopt;
}

std::optional<double> checked_number(std::string_view text) {
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return in_range(value);
}

}  // namespace plait
