#include "io/model/architecture_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <type_traits>
#include <utility>

#include "base/error.h"
#include "io/format/json_keys.h"
#include "io/format/json_writer.h"
#include "io/model/config_fields.h"

namespace plait {
namespace {

constexpr int kMostFieldSize = 1 << 28;

using Members = std::vector<std::pair<std::string_view, std::string>>;

template <typename Config>
std::string dump_changed(Config config, Config defaults);

// The JSON of each field.
struct FieldWriter {
  Members& members;

  void operator()(std::string_view key, int& field) const { put(key, json_number(field)); }
  void operator()(std::string_view key, bool& field) const { put(key, field ? "true" : "false"); }
  void operator()(std::string_view key, double& field) const { put(key, json_number(field)); }
  void operator()(std::string_view key, std::vector<int>& field) const {
    put(key, fmt::format("[{}]", fmt::join(field, ", ")));
  }
  void operator()(std::string_view key, std::vector<std::string>& field) const {
    std::vector<std::string> texts;
    for (const std::string& text : field) texts.push_back(json_text(text));
    put(key, json_list(texts));
  }
  template <typename Enum>
  void operator()(std::string_view key, Enum& field, const EnumNames& names) const {
    put(key, json_text(names[static_cast<std::size_t>(field)]));
  }
  template <typename Struct>
  requires std::is_class_v<Struct>
  void operator()(std::string_view key, Struct& field) const {
    put(key, dump_changed(field, Struct{}));
  }

 private:
  void put(std::string_view key, std::string value) const {
    members.emplace_back(key, std::move(value));
  }
};

template <typename Config>
std::string dump_changed(Config config, Config defaults) {
  Members all;
  Members usual;
  visit_fields(config, FieldWriter{all});
  visit_fields(defaults, FieldWriter{usual});
  JsonObject object;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].second != usual[i].second) object.json(all[i].first, all[i].second);
  return object.str();
}

// Sets the fields whose keys are there, and notes all keys.
struct FieldReader {
  const JsonValue& object;
  std::vector<std::string_view>& keys;

  void operator()(std::string_view key, int& field) const {
    keys.push_back(key);
    field = object.integer_or(key, 0, kMostFieldSize, field);
  }
  void operator()(std::string_view key, bool& field) const {
    keys.push_back(key);
    field = object.boolean_or(key, field);
  }
  void operator()(std::string_view key, double& field) const {
    keys.push_back(key);
    if (const auto value = object.find(key)) field = value->at_least(0);
  }
  void operator()(std::string_view key, std::vector<int>& field) const {
    keys.push_back(key);
    const auto list = object.find(key);
    if (!list) return;
    field.clear();
    for (const JsonValue& item : list->items()) field.push_back(item.integer(0, kMostFieldSize));
  }
  void operator()(std::string_view key, std::vector<std::string>& field) const {
    keys.push_back(key);
    const auto list = object.find(key);
    if (!list) return;
    field.clear();
    for (const JsonValue& item : list->items()) field.push_back(item.text());
  }
  template <typename Enum>
  void operator()(std::string_view key, Enum& field, const EnumNames& names) const {
    keys.push_back(key);
    if (const auto value = object.find(key)) field = static_cast<Enum>(value->choice(names));
  }
  template <typename Struct>
  requires std::is_class_v<Struct>
  void operator()(std::string_view key, Struct& field) const {
    keys.push_back(key);
    if (const auto value = object.find(key)) read_fields(*value, field);
  }

  template <typename Config>
  static void read_fields(const JsonValue& object, Config& config) {
    std::vector<std::string_view> keys;
    visit_fields(config, FieldReader{object, keys});
    allow_only_of(object, keys);
  }
};

template <typename Config>
Config read_config(const JsonValue& object, Config config = {}) {
  FieldReader::read_fields(object, config);
  if (const std::string fault = fault_of(config); !fault.empty())
    throw InputError(object.where(), fault);
  return config;
}

// A gate's activation is silu unless it is said.
TransformerConfig usual_config(bool gated) {
  TransformerConfig config;
  if (gated) config.activation = Function::silu;
  return config;
}

template <typename Config>
Config without_name(Config config) {
  config.name.clear();
  return config;
}

}  // namespace

std::string dump_config(TransformerConfig config) {
  const bool gated = config.gated;
  return dump_changed(std::move(config), usual_config(gated));
}
std::string dump_config(WideResnetConfig config) { return dump_changed(std::move(config), {}); }
std::string dump_config(TransganConfig config) { return dump_changed(std::move(config), {}); }

TransformerConfig read_transformer_config(const JsonValue& object) {
  return read_config(object, usual_config(object.boolean_or("gated", false)));
}
WideResnetConfig read_wide_resnet_config(const JsonValue& object) {
  return read_config<WideResnetConfig>(object);
}
TransganConfig read_transgan_config(const JsonValue& object) {
  return read_config<TransganConfig>(object);
}

std::string dump_architecture(const Architecture& architecture) {
  JsonObject object;
  if (const auto* transformer = std::get_if<TransformerConfig>(&architecture))
    return object.json("transformer", dump_config(*transformer)).str();
  if (const auto* resnet = std::get_if<WideResnetConfig>(&architecture))
    return object.json("wide_resnet", dump_config(*resnet)).str();
  if (const auto* gan = std::get_if<TransganConfig>(&architecture))
    return object.json("transgan", dump_config(*gan)).str();
  if (std::holds_alternative<OpsOnly>(architecture)) return object.boolean("ops_only", true).str();
  return "";
}

Architecture restore_architecture(const JsonValue& object) {
  object.allow_only({"transformer", "wide_resnet", "transgan", "ops_only"});
  if (object.members().size() != 1)
    throw InputError(object.where(),
                     "needs one of 'transformer', 'wide_resnet', 'transgan' and "
                     "'ops_only', and no other");
  if (const auto transformer = object.find("transformer"))
    return without_name(read_transformer_config(*transformer));
  if (const auto resnet = object.find("wide_resnet"))
    return without_name(read_wide_resnet_config(*resnet));
  if (const auto gan = object.find("transgan")) return without_name(read_transgan_config(*gan));
  if (!object.at("ops_only").boolean())
    throw InputError(object.at("ops_only").where(), "must be true");
  return OpsOnly{};
}

}  // namespace plait
