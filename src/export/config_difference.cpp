// Which field of two configurations differs.
#include <string>
#include <type_traits>
#include <vector>

#include "export/megatron_model.h"
#include "io/format/json_writer.h"
#include "io/model/config_fields.h"

namespace plait {
namespace {

// Every field in words, one after the other: "moe.top_k", "2".
struct FieldList {
  std::vector<std::pair<std::string, std::string>>* fields;
  std::string prefix = {};

  void add(std::string_view key, std::string value) const {
    fields->emplace_back(prefix + std::string(key), std::move(value));
  }
  void operator()(std::string_view key, int& field) const { add(key, std::to_string(field)); }
  void operator()(std::string_view key, bool& field) const { add(key, field ? "yes" : "no"); }
  void operator()(std::string_view key, double& field) const { add(key, json_number(field)); }
  void operator()(std::string_view key, std::vector<int>& field) const {
    std::string text;
    for (const int value : field) text += std::to_string(value) + " ";
    add(key, text);
  }
  void operator()(std::string_view key, std::vector<std::string>& field) const {
    std::string text;
    for (const std::string& value : field) text += value + "\n";
    add(key, text);
  }
  template <typename Enum>
  void operator()(std::string_view key, Enum& field, const EnumNames& names) const {
    add(key, std::string(names[static_cast<int>(field)]));
  }
  template <typename Struct>
  requires std::is_class_v<Struct>
  void operator()(std::string_view key, Struct& field) const {
    visit_fields(field, FieldList{fields, prefix + std::string(key) + "."});
  }
};

}  // namespace

std::string difference(TransformerConfig a, TransformerConfig b) {
  std::vector<std::pair<std::string, std::string>> of_a;
  std::vector<std::pair<std::string, std::string>> of_b;
  visit_fields(a, FieldList{&of_a});
  visit_fields(b, FieldList{&of_b});
  for (std::size_t i = 0; i < of_a.size(); ++i)
    if (of_a[i] != of_b[i]) return of_a[i].first;
  return "";
}

}  // namespace plait
