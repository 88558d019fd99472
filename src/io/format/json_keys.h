#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "io/format/json_reader.h"

namespace plait {

// A member that goes by several names: plait's own first, then the aliases. InputError when two of
// them are there; at_one_of() also when none is.
std::optional<JsonValue> find_one_of(const JsonValue& object,
                                     std::initializer_list<std::string_view> keys);
JsonValue at_one_of(const JsonValue& object, std::initializer_list<std::string_view> keys);

// JsonValue::allow_only() for keys that come from a table.
void allow_only_of(const JsonValue& object, const std::vector<std::string_view>& keys);

}  // namespace plait
