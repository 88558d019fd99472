#pragma once
// Fields of measured points that a file may leave out. What a point has is said once, by a function
// that hands every key and field to `visit`; writing and reading are two visitors of it.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "io/format/json_reader.h"
#include "io/format/json_writer.h"

namespace plait {

// Writes what is there.
struct FieldWriter {
  JsonObject& object;

  void operator()(std::string_view key, const std::optional<double>& value) const {
    if (value) object.number(key, *value);
  }
  template <typename Quantity>
  void operator()(std::string_view key, const std::optional<Quantity>& value) const {
    if (value) object.number(key, value->value);
  }
  void operator()(std::string_view key, bool value) const {
    if (value) object.boolean(key, true);
  }
  void operator()(std::string_view key, const std::vector<std::string>& values) const {
    if (values.empty()) return;
    std::vector<std::string> texts;
    for (const std::string& value : values) texts.push_back(json_text(value));
    object.json(key, json_list(texts));
  }
};

// Reads what is there.
struct FieldReader {
  const JsonValue& json;

  template <typename Quantity>
  void operator()(std::string_view key, std::optional<Quantity>& into) const {
    if (const auto value = json.find(key)) into = Quantity(value->at_least(0));
  }
  void operator()(std::string_view key, bool& into) const { into = json.boolean_or(key, false); }
  void operator()(std::string_view key, std::vector<std::string>& into) const {
    if (const auto list = json.find(key))
      for (const JsonValue& value : list->items()) into.push_back(value.text());
  }
};

}  // namespace plait
