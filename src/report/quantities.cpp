#include "report/quantities.h"

#include <fmt/format.h>

#include <cmath>

namespace plait {

std::string in_words(Seconds time) {
  const double size = std::abs(time.value);
  if (size == 0) return "0";
  if (size >= 100 * kSecondsPerHour) return fmt::format("{:.0f} h", time.value / kSecondsPerHour);
  if (size >= 1000) return fmt::format("{:.0f} s", time.value);
  if (size >= 1) return fmt::format("{:.2f} s", time.value);
  if (size >= 1e-3) return fmt::format("{:.2f} ms", time.value * 1e3);
  return fmt::format("{:.1f} us", time.value * 1e6);
}

std::string long_time(Seconds time) {
  constexpr double kSecondsPerDay = 24 * kSecondsPerHour;
  if (time.value >= 2 * kSecondsPerDay)
    return fmt::format("{:.{}f} days", time.value / kSecondsPerDay,
                       time.value < 100 * kSecondsPerDay ? 2 : 0);
  if (time.value >= kSecondsPerHour) return fmt::format("{:.2f} h", time.value / kSecondsPerHour);
  return in_words(time);
}

std::string in_words(Bytes size) {
  const double magnitude = std::abs(size.value);
  if (magnitude == 0) return "0";
  if (magnitude >= 0x1p41) return fmt::format("{:.1f} TiB", size.value / 0x1p40);
  if (magnitude >= 0x1p30) return fmt::format("{:.1f} GiB", size.value / 0x1p30);
  return fmt::format("{:.0f} MiB", size.value / 0x1p20);
}

std::string in_words(Usd amount) {
  const double size = std::abs(amount.value);
  if (size >= 10000) return "$" + grouped(amount.value);
  if (size >= 0.995 || size < 1e-9) return fmt::format("${:.2f}", amount.value);
  return fmt::format("${:.{}f}", amount.value, static_cast<int>(1 - std::floor(std::log10(size))));
}

std::string in_gibibytes(Bytes size) { return fmt::format("{:.1f}", size.value / 0x1p30); }

std::string percent(double fraction) { return fmt::format("{:.1f} %", fraction * 100); }

std::string change(double fraction, const std::string& more, const std::string& less) {
  if (std::abs(fraction) < 0.0005) return "no difference";
  if (fraction > 1) return fmt::format("{:.1f} times {}", fraction + 1, more);
  return percent(std::abs(fraction)) + " " + (fraction > 0 ? more : less);
}

std::string grouped(double count) {
  std::string digits = fmt::format("{:.0f}", count);
  const std::size_t first = digits.starts_with('-') ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3;) digits.insert(i -= 3, ",");
  return digits;
}

std::string abbreviated(double count) {
  if (count >= 999.5e9) return fmt::format("{:.2f} T", count / 1e12);
  if (count >= 999.5e6) return fmt::format("{:.2f} B", count / 1e9);
  if (count >= 999.5e3) return fmt::format("{:.1f} M", count / 1e6);
  return grouped(count);
}

std::string counted(double count, const std::string& noun) {
  return grouped(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace plait
