#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plait {

// JSON text, each function giving one valid value on one line.
std::string json_text(std::string_view text);  // quoted; what is not UTF-8 is replaced
// Reads back as the same double, bit for bit: 8, 0.1, 1.5e+20. Must be finite.
std::string json_number(double value);
std::string json_list(const std::vector<std::string>& items);

// An object, member by member, in the order of the calls.
class JsonObject {
 public:
  JsonObject& text(std::string_view key, std::string_view value);
  JsonObject& number(std::string_view key, double value);
  JsonObject& boolean(std::string_view key, bool value);
  JsonObject& json(std::string_view key, std::string_view value);  // JSON already
  std::string str() const { return "{" + members_ + "}"; }

 private:
  std::string members_;
};

// The same JSON document for people to read: what fits into `columns` stands on one line, the rest
// is indented by two spaces, and lists and objects of plain values are filled like a paragraph.
// Numbers keep their value to the last bit. `json` must be valid, from the functions above.
std::string lay_out_json(std::string_view json, int columns = 100);

}  // namespace plait
