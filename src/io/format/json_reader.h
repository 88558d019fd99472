#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/format/text_file.h"

namespace plait {

// The largest count that files may have.
inline constexpr int kMaxInt = 1'000'000'000;

// A value inside a JSON document that remembers where it stands, so that every complaint names the
// file and the JSON pointer: "cluster.json#/nodes/3/bandwidth_GBps: must be positive, is -5".
// All accessors throw InputError. Cheap to copy; keeps the document alive.
class JsonValue {
 public:
  const std::string& where() const { return where_; }

  bool is_null() const;
  bool is_object() const;
  bool is_array() const;
  bool is_string() const;
  bool is_number() const;
  bool is_boolean() const;

  // Objects. `at` needs the key to be there; `find` gives nothing when it is absent or null.
  JsonValue at(std::string_view key) const;
  std::optional<JsonValue> find(std::string_view key) const;
  std::vector<std::pair<std::string, JsonValue>> members() const;  // in the file's order
  // Complains about the first key that is not among `keys` and suggests the nearest that is.
  void allow_only(std::initializer_list<std::string_view> keys) const;

  std::vector<JsonValue> items() const;  // arrays

  std::string text() const;
  bool boolean() const;
  double number() const;                   // finite
  double positive() const;                 // > 0, from 1e-30 to 1e30: products do not overflow
  double at_least(double least) const;     // >= least, and 0 or within the same bounds
  int integer(int least, int most) const;  // whole and within [least, most]
  // One of `names`; returns its position.
  int choice(const std::vector<std::string_view>& names) const;

  // `at(key)` or `find(key)` and then the accessor, for the common cases.
  std::string text_or(std::string_view key, std::string fallback) const;
  double number_or(std::string_view key, double fallback) const;
  int integer_or(std::string_view key, int least, int most, int fallback) const;
  bool boolean_or(std::string_view key, bool fallback) const;

  struct Node;  // a JSON value of the library that is used; known to json_reader.cpp only

 private:
  friend JsonValue parse_json(const std::string& name, std::string_view text);
  JsonValue(std::shared_ptr<const void> document, const Node* node, std::string where);
  [[noreturn]] void expected(const std::string& what) const;

  std::shared_ptr<const void> document_;
  const Node* node_ = nullptr;
  std::string where_;
};

// Parses a whole document; `name` stands for the file in messages. Duplicate keys are errors.
JsonValue parse_json(const std::string& name, std::string_view text);
JsonValue read_json_file(const std::string& path);

// Where a path is expected, a text that begins with a brace is the document itself: for callers
// that have no file. Messages then call it `name`.
bool is_json_text(std::string_view path_or_text);
JsonValue read_json_document(const std::string& path_or_text, const std::string& name);

// The known word that is nearest to `word`, or "" when none is near enough to suggest.
std::string nearest_word(std::string_view word, const std::vector<std::string_view>& known);

// " (did you mean 'x'?)" or "".
std::string suggestion(std::string_view word, const std::vector<std::string_view>& known);

}  // namespace plait
