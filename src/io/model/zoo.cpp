#include "io/model/zoo.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

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

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Words that tell trainings of one network apart, and months of publication: "2407".
bool is_of_training(std::string_view word) {
  constexpr std::string_view kWords[] = {"instruct", "chat", "base", "it",       "pt",     "hf",
                                         "meta",     "sft",  "dpo",  "thinking", "preview"};
  const bool is_month = word.size() == 4 && (word.starts_with("23") || word.starts_with("24") ||
                                             word.starts_with("25") || word.starts_with("26"));
  return std::ranges::find(kWords, word) != std::end(kWords) ||
         (is_month && std::ranges::all_of(word, is_digit));
}

// "llama3-8b" of "Llama-3 8B": only what parts two numbers stays, as llama-3-3b is not llama-33b.
// Without the words of a training: "qwen2.5-7b" of "Qwen2.5-7B-Instruct".
std::string spelled(const std::string& name, bool with_training) {
  std::string out;
  std::string word;
  for (const char c : lower(name) + "-") {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '.') {
      word += c;
      continue;
    }
    if (word.empty() || (!with_training && is_of_training(word))) {
      word.clear();
      continue;
    }
    if (!out.empty() && is_digit(out.back()) && is_digit(word.front())) out += '-';
    out += std::exchange(word, "");
  }
  return out;
}

const JsonValue* entry_named(const std::string& name) {
  for (const bool with_training : {true, false}) {
    const std::string wanted = spelled(name, with_training);
    const auto is_it = [&](const std::string& own) { return spelled(own, true) == wanted; };
    for (const JsonValue& entry : entries())
      if (is_it(entry.at("name").text()) || std::ranges::any_of(aliases_of(entry), is_it))
        return &entry;
  }
  return nullptr;
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
  const JsonValue* entry = entry_named(name);
  if (entry == nullptr) return std::nullopt;
  if (!sequence)
    if (const auto own = entry->find("sequence")) sequence = own->integer(1, 1 << 20);
  LoadedModel loaded = read_model(entry->at("config"), sequence);
  loaded.model.name = entry->at("name").text();
  if (auto* config = std::get_if<TransformerConfig>(&loaded.model.architecture))
    add_notes(*entry, *config);
  return loaded;
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
