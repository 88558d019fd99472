#pragma once

// Configurations that differ from another in one field, for tests.

#include <string>
#include <type_traits>
#include <vector>

#include "io/model/config_fields.h"

namespace plait::samples {

// Counts the fields of a configuration, those of nested structs one by one, and changes one of
// them. A field has kVariants other values, of which some may be faults.
struct FieldChanger {
  static constexpr int kVariants = 3;

  int wanted = -1;
  int variant = 0;
  std::string prefix = {};
  int* count = nullptr;
  std::string* changed = nullptr;  // "moe.top_k"

  bool is_wanted(std::string_view key) const {
    if ((*count)++ != wanted) return false;
    *changed = prefix + std::string(key);
    return true;
  }
  void operator()(std::string_view key, int& field) const {
    const int others[] = {field + 1, field == 0 ? 2 : 2 * field, field + 2};
    if (is_wanted(key)) field = others[variant];
  }
  void operator()(std::string_view key, bool& field) const {
    if (is_wanted(key)) field = !field;
  }
  void operator()(std::string_view key, double& field) const {
    const double others[] = {field + 1, field + 0.1, 2 * field + 7};
    if (is_wanted(key)) field = others[variant];
  }
  void operator()(std::string_view key, std::vector<int>& field) const {
    if (is_wanted(key)) field.push_back(1 + variant);
  }
  void operator()(std::string_view key, std::vector<std::string>& field) const {
    if (is_wanted(key)) field.emplace_back("something");
  }
  template <typename Enum>
  void operator()(std::string_view key, Enum& field, const EnumNames& names) const {
    const int next = (static_cast<int>(field) + 1 + variant) % static_cast<int>(names.size());
    if (is_wanted(key)) field = static_cast<Enum>(next);
  }
  template <typename Struct>
  requires std::is_class_v<Struct>
  void operator()(std::string_view key, Struct& field) const {
    FieldChanger inside = *this;
    inside.prefix += std::string(key) + ".";
    visit_fields(field, inside);
  }
};

template <typename Config>
struct ChangedConfig {
  Config config;
  std::string field;
};

// Every configuration that differs from `config` in one field and has no fault.
template <typename Config>
std::vector<ChangedConfig<Config>> changed_in_one_field(const Config& config) {
  std::vector<ChangedConfig<Config>> out;
  for (int field = 0;; ++field) {
    std::string name;
    for (int variant = 0; variant < FieldChanger::kVariants; ++variant) {
      Config changed = config;
      int count = 0;
      name.clear();
      visit_fields(
          changed,
          FieldChanger{.wanted = field, .variant = variant, .count = &count, .changed = &name});
      if (!name.empty() && changed != config && fault_of(changed).empty())
        out.push_back({changed, name});
    }
    if (name.empty()) return out;
  }
}

}  // namespace plait::samples
