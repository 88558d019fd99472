#include "search/space/effort.h"

#include <algorithm>
#include <cctype>

namespace plait {

const std::vector<std::string_view>& effort_names() {
  static const std::vector<std::string_view> names{"quick", "normal", "thorough", "prove"};
  return names;
}

std::string_view name_of(Effort effort) { return effort_names()[static_cast<int>(effort)]; }

std::optional<Effort> effort_named(std::string_view name) {
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  const std::vector<std::string_view>& names = effort_names();
  for (std::size_t i = 0; i < names.size(); ++i)
    if (std::ranges::equal(name, names[i], same)) return static_cast<Effort>(i);
  return std::nullopt;
}

}  // namespace plait
