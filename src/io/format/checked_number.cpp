#include "io/format/checked_number.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace plait {
namespace {

constexpr double kRounding = 1e-9;  // of some conversions, one after the other

}  // namespace

bool has_prefixed_unit(std::string_view key) {
  static constexpr std::array<std::string_view, 16> kUnits{
      "_us",  "_ms", "_ns",   "_KB",   "_KiB",  "_MB",   "_MiB",    "_GB",
      "_GiB", "_TB", "_MBps", "_GBps", "_Gbps", "_Mbps", "_TFLOPs", "_hour"};
  return std::any_of(kUnits.begin(), kUnits.end(),
                     [&](std::string_view unit) { return key.ends_with(unit); });
}

std::optional<double> in_range(double value, double smallest, double largest) {
  const double size = std::abs(value);
  if (value == 0 || (size >= smallest && size <= largest)) return value;
  if (size > largest && size <= largest * (1 + kRounding)) return std::copysign(largest, value);
  if (size < smallest && size >= smallest * (1 - kRounding)) return std::copysign(smallest, value);
  return std::nullopt;
}

std::optional<double> checked_number(std::string_view text) {
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return in_range(value);
}

}  // namespace plait
