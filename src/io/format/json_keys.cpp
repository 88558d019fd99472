#include "io/format/json_keys.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace plait {

std::optional<JsonValue> find_one_of(const JsonValue& object,
                                     std::initializer_list<std::string_view> keys) {
  std::optional<JsonValue> found;
  std::string_view found_key;
  for (const std::string_view key : keys) {
    const auto value = object.find(key);
    if (!value) continue;
    if (found)
      throw InputError(object.where(),
                       fmt::format("'{}' and '{}' mean the same: keep one", found_key, key));
    found = value;
    found_key = key;
  }
  return found;
}

JsonValue at_one_of(const JsonValue& object, std::initializer_list<std::string_view> keys) {
  const auto found = find_one_of(object, keys);
  return found ? *found : object.at(*keys.begin());
}

void allow_only_of(const JsonValue& object, const std::vector<std::string_view>& keys) {
  for (const auto& [key, value] : object.members())
    if (std::ranges::find(keys, key) == keys.end())
      throw InputError(object.where(),
                       fmt::format("unknown key '{}'{}", key, suggestion(key, keys)));
}

}  // namespace plait
