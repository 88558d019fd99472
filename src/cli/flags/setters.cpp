#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "cli/flags/command.h"
#include "cli/flags/magnitudes.h"
#include "io/format/json_reader.h"

namespace plait {
namespace {

// What the user wrote, short enough for a message.
std::string quoted(const std::string& text) {
  constexpr std::size_t kMost = 40;
  return text.size() <= kMost ? "'" + text + "'" : "'" + text.substr(0, kMost) + "...'";
}

int parse_integer(const std::string& flag, const std::string& text, int least, int most) {
  long long value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, value);
  const bool whole = stop == end && !text.empty() && fault != std::errc::invalid_argument;
  if (!whole) throw InputError(flag, fmt::format("must be a whole number, is {}", quoted(text)));
  if (fault == std::errc::result_out_of_range || value < least || value > most)
    throw InputError(flag, fmt::format("must be from {} to {}, is {}", least, most, quoted(text)));
  return static_cast<int>(value);
}

}  // namespace

Setter into_text(std::string& into) {
  return [&into](const std::string& flag, const std::string& text) {
    if (text.empty()) throw InputError(flag, "is empty");
    into = text;
  };
}

Setter into_one_of(std::string& into, std::vector<std::string> names) {
  return [&into, names = std::move(names)](const std::string& flag, const std::string& text) {
    if (std::ranges::find(names, text) == names.end())
      refuse_choice(flag, text, {names.begin(), names.end()});
    into = text;
  };
}

Setter into_integer(int& into, int least, int most) {
  return [&into, least, most](const std::string& flag, const std::string& text) {
    into = parse_integer(flag, text, least, most);
  };
}

Setter into_integer(std::optional<int>& into, int least, int most) {
  return [&into, least, most](const std::string& flag, const std::string& text) {
    into = parse_integer(flag, text, least, most);
  };
}

Setter into_fraction(double& into) {
  return [&into](const std::string& flag, const std::string& text) {
    double value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, fault] = std::from_chars(text.data(), end, value);
    if (stop != end || fault != std::errc() || !(value >= 0 && value <= 1))
      throw InputError(flag, fmt::format("must be a number from 0 to 1, is {}", quoted(text)));
    into = value;
  };
}

Setter into_gap(std::optional<double>& into) {
  return [&into](const std::string& flag, const std::string& text) {
    const bool per_cent = text.ends_with('%');
    const char* end = text.data() + text.size() - (per_cent ? 1 : 0);
    double value = 0;
    const auto [stop, fault] = std::from_chars(text.data(), end, value);
    const double most = per_cent ? 100 : 1;
    if (stop != end || fault != std::errc() || !(value >= 0 && value <= most))
      throw InputError(flag, fmt::format("must be a gap such as 2% or 0.02, is {}", quoted(text)));
    into = per_cent ? value / 100 : value;
  };
}

Setter into_switch(bool& into) {
  return [&into](const std::string&, const std::string&) { into = true; };
}

Setter into_list(std::vector<int>& into, int least, int most) {
  return [&into, least, most](const std::string& flag, const std::string& text) {
    into.clear();
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t comma = std::min(text.find(',', begin), text.size());
      std::string number = text.substr(begin, comma - begin);
      number.erase(0, number.find_first_not_of(' '));
      number.erase(number.find_last_not_of(' ') + 1);
      into.push_back(parse_integer(flag, number, least, most));
      begin = comma + 1;
    }
  };
}

Setter into_tokens(std::optional<int>& into, int least, int most) {
  return [&into, least, most](const std::string& flag, const std::string& said) {
    static constexpr std::string_view kUnits[] = {"tokens", "token"};
    std::string bare = said;
    take_unit(bare, kUnits);
    const std::string& text = bare;
    const std::string letters = "kKmM";
    if (text.empty() || letters.find(text.back()) == letters.npos) {
      into = parse_integer(flag, text, least, most);
      return;
    }
    const int shift = text.back() == 'k' || text.back() == 'K' ? 10 : 20;
    int count = 0;
    const char* end = text.data() + text.size() - 1;
    const auto [stop, fault] = std::from_chars(text.data(), end, count);
    if (stop != end || fault != std::errc() || count < 1 || count > most >> shift)
      throw InputError(flag, fmt::format("must be tokens such as 4096 or 128k, at most {}, is {}",
                                         most, quoted(text)));
    into = count << shift;
  };
}

double parse_size(const std::string& flag, const std::string& text) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  static constexpr Unit kUnits[] = {{"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},
                                    {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, value);
  const std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  double scale = 0;
  for (const Unit& known : kUnits)
    if (known.name == unit) scale = known.bytes;
  const bool good = fault == std::errc() && scale > 0 && value > 0 && value * scale < 1e18;
  if (!good)
    throw InputError(flag, fmt::format("must be a size above 0 such as 12000MB, 24GB or 70GiB, is "
                                       "{}",
                                       quoted(text)));
  return value * scale;
}

Setter into_size(std::optional<Bytes>& into) {
  return [&into](const std::string& flag, const std::string& text) {
    into = Bytes(parse_size(flag, text));
  };
}

Flag plan_file_flag(std::string& into) {
  return {.name = "PLAN",
          .value = "PLAN",
          .help = "a file that plait plan -o saved",
          .set = into_text(into),
          .required = true};
}

double parse_seconds(const std::string& flag, const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, value);
  const std::string unit(stop, end);
  const double scale = unit.empty() || unit == "s" ? 1
                       : unit == "ms"              ? 1e-3
                       : unit == "m"               ? 60
                       : unit == "h"               ? 3600
                                                   : 0;
  if (fault != std::errc() || scale == 0 || !std::isfinite(value) || value <= 0)
    throw InputError(flag,
                     fmt::format("must be a time such as 10s, 500ms or 2m, is {}", quoted(text)));
  return value * scale;
}

void refuse_choice(const std::string& flag, const std::string& text,
                   const std::vector<std::string_view>& names) {
  throw InputError(flag, fmt::format("must be one of {}, is {}{}", fmt::join(names, ", "),
                                     quoted(text), text.size() > 1 ? suggestion(text, names) : ""));
}

std::vector<std::string> as_strings(const std::vector<std::string_view>& names) {
  return {names.begin(), names.end()};
}

}  // namespace plait
