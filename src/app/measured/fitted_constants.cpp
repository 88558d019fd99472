#include "app/measured/fitted_constants.h"

#include "io/cluster/device_json.h"
#include "io/format/json_reader.h"
#include "io/format/json_writer.h"

namespace plait {
namespace {

void apply_to_device(const std::string& name, const JsonValue& constants, Catalogue& catalogue) {
  const DeviceEntry& known = find_device(catalogue, name, constants.where());
  for (DeviceEntry& entry : catalogue.devices)
    if (entry.type.name == known.type.name)
      entry.type.efficiency = read_efficiency(constants, entry.type.efficiency);
}

void apply_to_framework(const std::string& name, const JsonValue& constants, Catalogue& catalogue) {
  const Framework& known = find_framework(catalogue, name, constants.where());
  for (FrameworkEntry& entry : catalogue.frameworks)
    if (entry.framework.name == known.name)
      entry.framework.traits = read_traits(constants, entry.framework.traits);
}

std::string efficiency_json(const DeviceType& type) {
  JsonObject object;
  const JsonValue device = parse_json(type.name, device_type_json(type));
  for (const auto& [constant, value] : device.at("efficiency").members())
    object.number(constant, value.number());
  return object.str();
}

std::string traits_json(const FrameworkTraits& traits) {
  JsonObject object;
  for (const TraitValue& trait : trait_values(traits)) object.number(trait.key, trait.value);
  return object.str();
}

}  // namespace

void apply_constants(const std::string& path, Catalogue& catalogue) {
  const JsonValue root = read_json_file(path);
  root.allow_only({"devices", "frameworks"});
  if (const auto devices = root.find("devices"))
    for (const auto& [name, constants] : devices->members())
      apply_to_device(name, constants, catalogue);
  if (const auto frameworks = root.find("frameworks"))
    for (const auto& [name, constants] : frameworks->members())
      apply_to_framework(name, constants, catalogue);
}

std::string fitted_device_json(const DeviceEntry& entry, const std::string& note) {
  std::vector<std::string> aliases;
  for (const std::string& alias : entry.aliases) aliases.push_back(json_text(alias));
  JsonObject object;
  object.text("name", entry.type.name)
      .text("like", entry.type.name)
      .json("aliases", json_list(aliases))
      .json("efficiency", efficiency_json(entry.type));
  if (entry.in_clusters) {
    DeviceType together = entry.type;
    together.efficiency = *entry.in_clusters;
    object.json("efficiency_in_clusters", efficiency_json(together));
  }
  return object.text("basis", "fitted").text("note", note).str();
}

std::string fitted_framework_json(const Framework& framework) {
  JsonObject traits;
  for (const TraitValue& trait : trait_values(framework.traits))
    if (trait.key.starts_with("host_") && trait.value > 0) traits.number(trait.key, trait.value);
  return JsonObject()
      .text("name", framework.name)
      .text("like", framework.name)
      .json("traits", traits.str())
      .str();
}

std::string constants_json(const Catalogue& catalogue) {
  JsonObject devices;
  for (const DeviceEntry& entry : catalogue.devices)
    devices.json(entry.type.name, efficiency_json(entry.type));
  JsonObject frameworks;
  for (const FrameworkEntry& entry : catalogue.frameworks)
    frameworks.json(entry.framework.name, traits_json(entry.framework.traits));
  return lay_out_json(
      JsonObject().json("devices", devices.str()).json("frameworks", frameworks.str()).str());
}

}  // namespace plait
