#include "app/request/request_error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "io/format/json_reader.h"

namespace plait {

RequestError::RequestError(std::string_view field, const std::string& what)
    : InputError(fmt::format("`{}`", field), what) {}

RequestError::RequestError(const PinViolation& violation)
    : RequestError(name_of(violation.dimension), violation.what) {}

std::string not_one_of(const std::string& text, const std::vector<std::string_view>& names) {
  constexpr std::size_t kMost = 40;  // of what the user wrote
  const std::string shown = text.size() <= kMost ? text : text.substr(0, kMost) + "...";
  return fmt::format("must be one of {}, is '{}'{}", fmt::join(names, ", "), shown,
                     text.size() > 1 ? suggestion(text, names) : "");
}

void refuse_unknown(std::string_view field, const std::string& text,
                    const std::vector<std::string_view>& names) {
  if (std::ranges::find(names, text) == names.end())
    throw RequestError(field, not_one_of(text, names));
}

}  // namespace plait
