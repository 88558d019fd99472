// Which field of two configurations differs.
#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
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

// What people call a field; others are named as a plan file names them.
constexpr std::pair<std::string_view, std::string_view> kWords[] = {
    {"gated", "gated activation"},
    {"norm_place", "place of norms"},
    {"parallel", "attention and MLP beside each other"},
    {"shared_norm", "norm that attention and MLP share"},
    {"embedding_norm", "norm of embeddings"},
    {"qk_norm", "norm of queries and keys"},
    {"attention_sinks", "attention sinks"},
    {"attention_scale", "scale of attention scores"},
    {"score_cap", "cap on attention scores"},
    {"logit_cap", "cap on logits"},
    {"logit_scale", "scale of logits"},
    {"embedding_scale", "scale of embeddings"},
    {"residual_scale", "scale of residuals"},
    {"window.size", "sliding window"},
    {"window.full", "layers without a sliding window"},
    {"rotary.unturned", "layers without rotary positions"},
    {"rotary.local_base", "second base of rotary positions"},
    {"rotary.scaling", "scaling of rotary positions"},
    {"positions", "kind of positions"}};

}  // namespace

std::string field_in_words(std::string_view field) {
  const auto known = std::ranges::find(kWords, field, [](const auto& pair) { return pair.first; });
  return std::string(known == std::end(kWords) ? field : known->second);
}

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
