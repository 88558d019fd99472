#include "io/format/json_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace plait {
namespace {

using Json = nlohmann::ordered_json;

std::string compact(const Json& value) {
  if (value.empty() || value.is_primitive())
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string text = value.is_object() ? "{" : "[";
  const char* separator = "";
  for (const auto& [key, item] : value.items()) {
    text += separator;
    if (value.is_object()) text += Json(key).dump() + ": ";
    text += compact(item);
    separator = ", ";
  }
  return text + (value.is_object() ? "}" : "]");
}

class Layout {
 public:
  explicit Layout(int columns) : columns_(static_cast<std::size_t>(columns)) {}

  // `before` is what already stands on the line, besides the indentation.
  std::string text(const Json& value, std::size_t indent, std::size_t before) const {
    std::string line = compact(value);
    const std::size_t room = columns_ - std::min(columns_, indent + before + 1);
    if (line.size() <= room || value.is_primitive() || value.empty()) return line;
    const auto plain = [](const Json& item) { return item.is_primitive(); };
    if (std::all_of(value.begin(), value.end(), plain)) return paragraph(value, indent);
    return block(value, indent);
  }

 private:
  static std::string name(const Json& object, const std::string& key) {
    return object.is_object() ? Json(key).dump() + ": " : "";
  }

  // One member to a line.
  std::string block(const Json& value, std::size_t indent) const {
    std::string out = value.is_object() ? "{" : "[";
    const char* separator = "\n";
    for (const auto& [key, item] : value.items()) {
      const std::string before = name(value, key);
      out += separator + std::string(indent + 2, ' ') + before;
      out += text(item, indent + 2, before.size());
      separator = ",\n";
    }
    return out + "\n" + std::string(indent, ' ') + (value.is_object() ? "}" : "]");
  }

  // As many members to a line as there is room for.
  std::string paragraph(const Json& value, std::size_t indent) const {
    std::string out = value.is_object() ? "{" : "[";
    std::size_t used = columns_;
    std::size_t left = value.size();
    for (const auto& [key, item] : value.items()) {
      const std::string word = name(value, key) + compact(item) + (--left == 0 ? "" : ",");
      if (used + 1 + word.size() > columns_) {
        out += "\n" + std::string(indent + 2, ' ');
        used = indent + 2;
      } else {
        out += ' ';
        ++used;
      }
      out += word;
      used += word.size();
    }
    return out + "\n" + std::string(indent, ' ') + (value.is_object() ? "}" : "]");
  }

  std::size_t columns_;
};

}  // namespace

std::string json_text(std::string_view text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string json_number(double value) {
  PLAIT_CHECK(std::isfinite(value));
  if (value == 0) return std::signbit(value) ? "-0.0" : "0";
  const bool whole = std::abs(value) < 0x1p53 && value == std::floor(value);
  if (whole) return fmt::format("{}", static_cast<std::int64_t>(value));
  return fmt::format("{}", value);
}

std::string json_list(const std::vector<std::string>& items) {
  return fmt::format("[{}]", fmt::join(items, ", "));
}

JsonObject& JsonObject::json(std::string_view key, std::string_view value) {
  if (!members_.empty()) members_ += ", ";
  members_ += fmt::format("{}: {}", json_text(key), value);
  return *this;
}

JsonObject& JsonObject::text(std::string_view key, std::string_view value) {
  return json(key, json_text(value));
}

JsonObject& JsonObject::number(std::string_view key, double value) {
  return json(key, json_number(value));
}

JsonObject& JsonObject::boolean(std::string_view key, bool value) {
  return json(key, value ? "true" : "false");
}

std::string lay_out_json(std::string_view json, int columns) {
  return Layout(columns).text(Json::parse(json.begin(), json.end()), 0, 0) + "\n";
}

}  // namespace plait
