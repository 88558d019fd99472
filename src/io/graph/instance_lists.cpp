#include "io/graph/instance_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/format/json_reader.h"
#include "io/graph/packed_file.h"

namespace plait {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostText = std::size_t{1} << 30;
constexpr std::size_t kMostNumbers = 60'000'000;  // about 0.8 GB
constexpr std::size_t kMostName = 1000;

// A file as the parser wants it: an iterator that reads as it goes.
class FileIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  FileIterator() = default;
  explicit FileIterator(PackedFile* file) : file_(file) {}
  char operator*() const { return file_->peek(); }
  FileIterator& operator++() {
    file_->skip();
    return *this;
  }
  void operator++(int) { file_->skip(); }
  bool operator==(const FileIterator& other) const { return ended() == other.ended(); }
  bool operator!=(const FileIterator& other) const { return !(*this == other); }

 private:
  bool ended() const { return file_ == nullptr || file_->at_end(); }
  PackedFile* file_ = nullptr;
};

// Follows the parser: objects by their keys, then lists of lists of numbers.
class Listener : public nlohmann::json_sax<Json> {
 public:
  explicit Listener(std::string path) : path_(std::move(path)) {}

  InstanceLists lists;

  bool start_object(std::size_t) override {
    if (depth_ > 0 || keys_.size() > objects_) wanted_here();
    if (objects_ > 0 && !is_object(keys_.back())) wanted_here();
    ++objects_;
    return true;
  }
  bool key(string_t& name) override {
    keys_.resize(objects_ - 1);
    const std::vector<std::string_view> known = known_keys();
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw InputError(
          place(), fmt::format("unknown key '{}'{}", name.substr(0, 60), suggestion(name, known)));
    keys_.push_back(name);
    const std::string whole = place();
    if (std::find(seen_.begin(), seen_.end(), whole) != seen_.end())
      throw InputError(place(), "appears twice");
    seen_.push_back(whole);
    return true;
  }
  bool end_object() override {
    --objects_;
    keys_.resize(objects_);
    for (const std::string_view name : objects_ == 0   ? std::vector<std::string_view>{"problem"}
                                       : objects_ == 1 ? required_of_problem()
                                                       : required_of_part())
      require(name);
    if (objects_ > 0) keys_.resize(objects_);
    return true;
  }
  bool start_array(std::size_t) override {
    NumberLists* list = current();
    if (list == nullptr || depth_ >= 2) wanted_here();
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    NumberLists* list = current();
    if (depth_ == 1) list->ends.push_back(list->numbers.size());
    return true;
  }
  bool number_integer(number_integer_t value) override {
    if (value < 0) throw InputError(place(), fmt::format("must not be negative, is {}", value));
    return number(value);
  }
  bool number_unsigned(number_unsigned_t value) override {
    constexpr auto kLargest = std::numeric_limits<std::int64_t>::max();
    return number(value > static_cast<number_unsigned_t>(kLargest)
                      ? kLargest
                      : static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t& text) override {
    if (value < 0)
      throw InputError(place(), fmt::format("must not be negative, is {}", text.substr(0, 40)));
    if (value != std::floor(value))
      throw InputError(place(), fmt::format("must be a whole number, is {}", text.substr(0, 40)));
    return number(value >= 9e18 ? std::numeric_limits<std::int64_t>::max()
                                : static_cast<std::int64_t>(value));
  }
  bool string(string_t& value) override {
    if (depth_ > 0 || keys_.size() != 2 || keys_[1] != "name") wanted_here();
    lists.name = value.substr(0, kMostName);
    return true;
  }
  bool null() override { wanted_here(); }
  bool boolean(bool) override { wanted_here(); }
  bool binary(binary_t&) override { wanted_here(); }
  bool parse_error(std::size_t byte, const std::string&, const Json::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error ..."
    std::string_view what = error.what();
    what.remove_prefix(std::min(what.size(), what.find("] ") + 2));
    const std::size_t colon = what.find(": ");
    if (what.starts_with("parse error") && colon != what.npos) what.remove_prefix(colon + 2);
    throw InputError(path_, fmt::format("not valid JSON at byte {}: {}", byte, what));
  }

 private:
  static bool is_object(std::string_view key) {
    return key == "problem" || key == "nodes" || key == "edges";
  }
  std::vector<std::string_view> known_keys() const {
    if (objects_ == 1) return {"problem"};
    if (objects_ == 2) return {"name", "nodes", "edges", "usage_limit"};
    if (keys_[1] == "nodes") return {"intervals", "costs", "usages"};
    return {"nodes", "costs"};
  }
  static std::vector<std::string_view> required_of_problem() { return {"nodes", "edges"}; }
  std::vector<std::string_view> required_of_part() const {
    if (keys_[1] == "nodes") return {"intervals", "costs", "usages"};
    return {"nodes", "costs"};
  }
  void require(std::string_view name) const {
    const std::string whole = fmt::format("{}/{}", place(), name);
    if (std::find(seen_.begin(), seen_.end(), whole) == seen_.end())
      throw InputError(place(), fmt::format("key '{}' is missing", name));
  }

  NumberLists* current() {
    if (keys_.size() != 3) return nullptr;
    const bool nodes = keys_[1] == "nodes";
    if (keys_[2] == "intervals") return &lists.intervals;
    if (keys_[2] == "usages") return &lists.node_usages;
    if (keys_[2] == "nodes") return &lists.edge_nodes;
    return nodes ? &lists.node_costs : &lists.edge_costs;
  }

  bool number(std::int64_t value) {
    NumberLists* list = current();
    if (list != nullptr && depth_ == 2) {
      if (++numbers_ > kMostNumbers)
        throw InputError(path_, fmt::format("has more than {} numbers, which is too much to read",
                                            kMostNumbers));
      list->numbers.push_back(value);
      return true;
    }
    if (depth_ > 0 || keys_.size() != 2 || keys_[1] != "usage_limit") wanted_here();
    lists.usage_limit = value;
    return true;
  }

  // "a.json#/problem/nodes/costs/3/1": where the parser is now.
  std::string place() const {
    std::string place = path_ + "#";
    for (const std::string& key : keys_) place += "/" + key;
    if (depth_ == 0) return place;
    const NumberLists* list = const_cast<Listener*>(this)->current();
    place += fmt::format("/{}", list->count());
    if (depth_ == 2)
      place +=
          fmt::format("/{}", list->numbers.size() - (list->ends.empty() ? 0 : list->ends.back()));
    return place;
  }

  [[noreturn]] void wanted_here() const {
    std::string wanted = "must be an object";
    if (depth_ == 2)
      wanted = "must be a whole number";
    else if (depth_ == 1)
      wanted = "must be a list of whole numbers";
    else if (keys_.size() == 3)
      wanted = "must be a list of lists of whole numbers";
    else if (keys_.size() == 2 && keys_[1] == "name")
      wanted = "must be a text";
    else if (keys_.size() == 2 && keys_[1] == "usage_limit")
      wanted = "must be a whole number";
    throw InputError(place(), wanted);
  }

  std::string path_;
  std::size_t objects_ = 0;        // that are open
  std::vector<std::string> keys_;  // of the open objects, the last being read
  std::vector<std::string> seen_;  // places of keys; there are ten at most
  int depth_ = 0;                  // of lists
  std::size_t numbers_ = 0;
};

}  // namespace

InstanceLists read_instance_lists(const std::string& path) {
  PackedFile file(path, kMostText);
  Listener listener(path);
  Json::sax_parse(FileIterator(&file), FileIterator(), &listener);
  return std::move(listener.lists);
}

}  // namespace plait
