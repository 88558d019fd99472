#include "io/format/json_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "io/format/checked_number.h"

namespace plait {

// JsonValue::Node is never defined: it stands for the library's type in the header.
using Json = nlohmann::ordered_json;

namespace {

constexpr std::size_t kMaxDepth = 200;
constexpr std::size_t kMaxKeys = 20'000;  // of one object, which the library searches one by one
constexpr std::size_t kMaxValues =
    2'000'000;                             // of a document: each takes memory many times its text
constexpr std::size_t kMaxText = 100'000;  // bytes of one text

const Json& json(const JsonValue::Node* node) { return *reinterpret_cast<const Json*>(node); }
const JsonValue::Node* opaque(const Json& value) {
  return reinterpret_cast<const JsonValue::Node*>(&value);
}

// A value in a message: short, on one line.
std::string shown(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() > 40 ? text.substr(0, 37) + "..." : text;
}

// Of the value at a JSON pointer.
std::pair<double, double> range_of(std::string_view where) {
  if (has_prefixed_unit(where)) return {kSmallestWithPrefix, kLargestWithPrefix};
  return {kSmallestQuantity, kLargestQuantity};
}

// JSON pointer escaping (RFC 6901).
std::string escaped(std::string_view key) {
  std::string out;
  for (const char c : key) {
    if (c == '~')
      out += "~0";
    else if (c == '/')
      out += "~1";
    else
      out += c;
  }
  return out;
}

// Line and column of a byte offset, both from 1.
std::string position(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t newline = before.rfind('\n');
  const std::size_t column = newline == before.npos ? before.size() : before.size() - newline - 1;
  return fmt::format("line {}, column {}", line, std::max<std::size_t>(column, 1));
}

// A first pass over the text that sees what the parsed document no longer shows: keys that appear
// twice, and nesting that is too deep to build. The library's own callback parser could tell too,
// but takes quadratic time for a long list of objects.
struct KeyWatch {
  std::vector<std::set<std::string>> open;  // keys seen in each object or list that is still open
  std::string duplicate;
  bool too_deep = false;
  bool too_wide = false;
  std::size_t values = 0;

  bool too_many() const { return values > kMaxValues; }
  bool value() { return ++values <= kMaxValues; }
  bool enter() {
    open.emplace_back();
    too_deep = open.size() > kMaxDepth;
    return !too_deep && value();
  }
  bool leave() {
    open.pop_back();
    return true;
  }
  bool key(std::string& name) {
    if (!open.back().insert(name).second) duplicate = name;
    too_wide = open.back().size() > kMaxKeys;
    return !too_wide;
  }
  bool start_object(std::size_t) { return enter(); }
  bool end_object() { return leave(); }
  bool start_array(std::size_t) { return enter(); }
  bool end_array() { return leave(); }
  bool null() { return value(); }
  bool boolean(bool) { return value(); }
  bool number_integer(Json::number_integer_t) { return value(); }
  bool number_unsigned(Json::number_unsigned_t) { return value(); }
  bool number_float(Json::number_float_t, const std::string&) { return value(); }
  bool string(std::string&) { return value(); }
  bool binary(Json::binary_t&) { return value(); }
  // The second pass meets the same error and reports it.
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) {
    return false;
  }
};

}  // namespace

JsonValue::JsonValue(std::shared_ptr<const void> document, const Node* node, std::string where)
    : document_(std::move(document)), node_(node), where_(std::move(where)) {}

void JsonValue::expected(const std::string& what) const {
  throw InputError(where_, fmt::format("must be {}, is {}", what, shown(json(node_))));
}

bool JsonValue::is_null() const { return json(node_).is_null(); }
bool JsonValue::is_object() const { return json(node_).is_object(); }
bool JsonValue::is_array() const { return json(node_).is_array(); }
bool JsonValue::is_string() const { return json(node_).is_string(); }
bool JsonValue::is_number() const { return json(node_).is_number(); }
bool JsonValue::is_boolean() const { return json(node_).is_boolean(); }

JsonValue JsonValue::at(std::string_view key) const {
  if (!is_object()) expected("an object");
  if (auto value = find(key)) return *value;
  throw InputError(where_, fmt::format("'{}' is missing", key));
}

std::optional<JsonValue> JsonValue::find(std::string_view key) const {
  if (!is_object()) expected("an object");
  const Json& object = json(node_);
  const auto it = object.find(std::string(key));
  if (it == object.end() || it->is_null()) return std::nullopt;
  return JsonValue(document_, opaque(*it), where_ + "/" + escaped(key));
}

std::vector<std::pair<std::string, JsonValue>> JsonValue::members() const {
  if (!is_object()) expected("an object");
  std::vector<std::pair<std::string, JsonValue>> out;
  for (const auto& [key, value] : json(node_).items())
    out.emplace_back(key, JsonValue(document_, opaque(value), where_ + "/" + escaped(key)));
  return out;
}

void JsonValue::allow_only(std::initializer_list<std::string_view> keys) const {
  if (!is_object()) expected("an object");
  const std::vector<std::string_view> known(keys);
  for (const auto& [key, value] : json(node_).items())
    if (std::ranges::find(known, key) == known.end())
      throw InputError(where_, fmt::format("unknown key '{}'{}", key, suggestion(key, known)));
}

std::vector<JsonValue> JsonValue::items() const {
  if (!is_array()) expected("a list");
  std::vector<JsonValue> out;
  for (const Json& item : json(node_))
    out.push_back(JsonValue(document_, opaque(item), fmt::format("{}/{}", where_, out.size())));
  return out;
}

std::string JsonValue::text() const {
  if (!is_string()) expected("a text");
  const auto& text = json(node_).get_ref<const std::string&>();
  if (text.size() > kMaxText)
    throw InputError(
        where_, fmt::format("is a text of {} bytes, at most {} are read", text.size(), kMaxText));
  return text;
}

bool JsonValue::boolean() const {
  if (!is_boolean()) expected("true or false");
  return json(node_).get<bool>();
}

double JsonValue::number() const {
  if (!is_number()) expected("a number");
  const double value = json(node_).get<double>();
  if (!std::isfinite(value)) expected("a finite number");
  return value;
}

double JsonValue::positive() const {
  const double value = number();
  if (!(value > 0)) expected("positive");
  const auto [smallest, largest] = range_of(where_);
  const auto inside = in_range(value, smallest, largest);
  if (!inside) expected(fmt::format("from {} to {}", smallest, largest));
  return *inside;
}

double JsonValue::at_least(double least) const {
  const double value = number();
  if (!(value >= least)) expected(fmt::format("at least {}", least));
  const auto [smallest, largest] = range_of(where_);
  const auto inside = in_range(value, smallest, largest);
  if (!inside && value > 1) expected(fmt::format("at most {}", largest));
  if (!inside) expected(fmt::format("0 or at least {}", smallest));
  return *inside;
}

int JsonValue::integer(int least, int most) const {
  const std::string range = fmt::format("a whole number from {} to {}", least, most);
  if (!is_number()) expected(range);
  const double value = json(node_).get<double>();
  if (!(value >= least && value <= most) || value != std::floor(value)) expected(range);
  return static_cast<int>(value);
}

int JsonValue::choice(const std::vector<std::string_view>& names) const {
  const std::string word = text();
  const auto it = std::ranges::find(names, word);
  if (it == names.end())
    throw InputError(where_, fmt::format("unknown value '{}', must be one of {}{}", word,
                                         fmt::join(names, ", "), suggestion(word, names)));
  return static_cast<int>(it - names.begin());
}

std::string JsonValue::text_or(std::string_view key, std::string fallback) const {
  const auto value = find(key);
  return value ? value->text() : std::move(fallback);
}

double JsonValue::number_or(std::string_view key, double fallback) const {
  const auto value = find(key);
  return value ? value->number() : fallback;
}

int JsonValue::integer_or(std::string_view key, int least, int most, int fallback) const {
  const auto value = find(key);
  return value ? value->integer(least, most) : fallback;
}

bool JsonValue::boolean_or(std::string_view key, bool fallback) const {
  const auto value = find(key);
  return value ? value->boolean() : fallback;
}

JsonValue parse_json(const std::string& name, std::string_view text) {
  KeyWatch watch;
  auto document = std::make_shared<Json>();
  try {
    Json::sax_parse(text.begin(), text.end(), &watch);
    if (!watch.too_deep && !watch.too_wide && !watch.too_many())
      *document = Json::parse(text.begin(), text.end());
  } catch (const nlohmann::json::parse_error& e) {
    const std::string_view what = e.what();
    const std::size_t colon = what.find(": ");
    throw InputError(name, fmt::format("not valid JSON at {}: {}", position(text, e.byte),
                                       colon == what.npos ? what : what.substr(colon + 2)));
  } catch (const nlohmann::json::exception& e) {
    const std::string_view what = e.what();
    throw InputError(name, fmt::format("not valid JSON: {}", what.substr(what.find("] ") + 2)));
  }
  if (watch.too_deep)
    throw InputError(name, fmt::format("nested deeper than {} levels", kMaxDepth));
  if (watch.too_many()) throw InputError(name, fmt::format("has more than {} values", kMaxValues));
  if (watch.too_wide)
    throw InputError(name, fmt::format("an object has more than {} keys", kMaxKeys));
  if (!watch.duplicate.empty())
    throw InputError(name, fmt::format("key '{}' appears twice", watch.duplicate));
  const JsonValue::Node* root = opaque(*document);
  return JsonValue(std::move(document), root, name + "#");
}

JsonValue read_json_file(const std::string& path) { return parse_json(path, read_text_file(path)); }

bool is_json_text(std::string_view path_or_text) {
  const std::size_t first = path_or_text.find_first_not_of(" \t\r\n");
  return first != path_or_text.npos && path_or_text[first] == '{';
}

JsonValue read_json_document(const std::string& path_or_text, const std::string& name) {
  return is_json_text(path_or_text) ? parse_json(name, path_or_text) : read_json_file(path_or_text);
}

std::string nearest_word(std::string_view word, const std::vector<std::string_view>& known) {
  const auto lower = [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  };
  std::string best;
  // Of a word of two letters, one must be right.
  std::size_t best_distance = std::min(std::max<std::size_t>(2, word.size() / 3) + 1,
                                       std::max<std::size_t>(1, word.size()));
  for (const std::string_view candidate : known) {
    // Levenshtein distance, one row at a time.
    std::vector<std::size_t> row(candidate.size() + 1);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= word.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j < row.size(); ++j) {
        const std::size_t change = diagonal + (lower(word[i - 1]) != lower(candidate[j - 1]));
        diagonal = row[j];
        row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
      }
    }
    // A key without its unit ("bandwidth" for "bandwidth_GBps") is one step away.
    // So is the family of an instance ("p4d" for "p4d.24xlarge").
    const bool family = candidate.size() > word.size() && candidate.starts_with(word) &&
                        candidate[word.size()] == '.';
    const bool stem = family || (word.size() >= 4 && candidate.starts_with(word));
    const std::size_t distance = stem ? std::min<std::size_t>(row.back(), 1) : row.back();
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string suggestion(std::string_view word, const std::vector<std::string_view>& known) {
  const std::string near = word.size() > 100 ? "" : nearest_word(word, known);
  return near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near);
}

}  // namespace plait
