#include "io/model/zoo.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "io/format/embedded.h"
#include "io/format/json_reader.h"
#include "io/model/huggingface/huggingface.h"
#include "io/model/load_model.h"

namespace plait {
namespace {

const std::vector<JsonValue>& entries() {
  static const std::vector<JsonValue> all =
      parse_json("models.json", embedded_file("models.json")).at("models").items();
  return all;
}

std::vector<std::string> aliases_of(const JsonValue& entry) {
  std::vector<std::string> out;
  if (const auto aliases = entry.find("aliases"))
    for (const JsonValue& alias : aliases->items()) out.push_back(alias.text());
  return out;
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  return text;
}

bool goes_by(const JsonValue& entry, const std::string& name) {
  if (entry.at("name").text() == name) return true;
  const std::vector<std::string> aliases = aliases_of(entry);
  return std::ranges::find(aliases, name) != aliases.end();
}

// Points stay: opt-1.3b is not opt-13b.
std::string letters_and_digits(const std::string& text) {
  std::string out;
  for (const char c : lower(text))
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '.') out += c;
  return out;
}

bool sounds_like(const JsonValue& entry, const std::string& name) {
  if (letters_and_digits(entry.at("name").text()) == name) return true;
  return std::ranges::any_of(aliases_of(entry), [&](const std::string& alias) {
    return letters_and_digits(alias) == name;
  });
}

// What the config of an entry does not say of its model.
void add_notes(const JsonValue& entry, TransformerConfig& config) {
  if (const auto features = entry.find("not_modelled"))
    for (const JsonValue& feature : features->items())
      config.not_modelled.push_back(feature.text());
}

// Nothing for models that are not transformers.
std::optional<TransformerConfig> transformer_of(const JsonValue& entry) {
  const JsonValue config = entry.at("config");
  if (config.find("plait_model")) return std::nullopt;
  std::optional<int> sequence;
  if (const auto own = entry.find("sequence")) sequence = own->integer(1, 1 << 20);
  TransformerConfig found = read_huggingface(config, sequence).config;
  found.name = entry.at("name").text();
  add_notes(entry, found);
  return found;
}

}  // namespace

std::vector<std::string> zoo_names() {
  std::vector<std::string> names;
  for (const JsonValue& entry : entries()) names.push_back(entry.at("name").text());
  return names;
}

std::vector<ZooEntry> zoo_entries() {
  std::vector<ZooEntry> out;
  for (const JsonValue& entry : entries())
    out.push_back({entry.at("name").text(), aliases_of(entry), entry.at("source").text()});
  return out;
}

std::optional<LoadedModel> zoo_model(const std::string& name, std::optional<int> sequence) {
  const std::string wanted = lower(name);
  for (const JsonValue& entry : entries()) {
    if (!goes_by(entry, wanted)) continue;
    if (!sequence)
      if (const auto own = entry.find("sequence")) sequence = own->integer(1, 1 << 20);
    LoadedModel loaded = read_model(entry.at("config"), sequence);
    loaded.model.name = entry.at("name").text();
    if (auto* config = std::get_if<TransformerConfig>(&loaded.model.architecture))
      add_notes(entry, *config);
    return loaded;
  }
  return std::nullopt;
}

std::optional<TransformerConfig> zoo_transformer(const std::string& name) {
  const std::string wanted = letters_and_digits(name);
  for (const JsonValue& entry : entries())
    if (sounds_like(entry, wanted)) return transformer_of(entry);
  return std::nullopt;
}

std::optional<TransformerConfig> zoo_transformer_of(double parameters) {
  static const std::map<double, TransformerConfig> by_parameters = [] {
    std::map<double, TransformerConfig> all;
    for (const JsonValue& entry : entries())
      if (auto config = transformer_of(entry))
        all.emplace(build_transformer(*config).parameters(), std::move(*config));
    return all;
  }();
  const auto found = by_parameters.find(parameters);
  return found == by_parameters.end() ? std::nullopt : std::optional(found->second);
}

std::string zoo_suggestion(const std::string& name) {
  std::vector<std::string> names;
  for (const ZooEntry& entry : zoo_entries()) {
    names.push_back(entry.name);
    names.insert(names.end(), entry.aliases.begin(), entry.aliases.end());
  }
  return suggestion(lower(name), {names.begin(), names.end()});
}

}  // namespace plait
