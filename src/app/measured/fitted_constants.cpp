#include "app/measured/fitted_constants.h"

#include <fmt/format.h>

#include "base/error.h"
#include "cost/framework/trait_changes.h"
#include "io/cluster/device_json.h"
#include "io/format/json_reader.h"
#include "io/format/json_writer.h"
#include "plan/names.h"

namespace plait {
namespace {

void apply_to_device(const std::string& name, const JsonValue& constants, Catalogue& catalogue) {
  const DeviceEntry& known = find_device(catalogue, name, constants.where());
  for (DeviceEntry& entry : catalogue.devices)
    if (entry.type.name == known.type.name)
      entry.type.efficiency = read_efficiency(constants, entry.type.efficiency);
}

void apply_to_framework(const std::string& name, const JsonValue& constants) {
  const auto framework = framework_named(name);
  if (!framework)
    throw InputError(constants.where(),
                     fmt::format("no such framework{}", suggestion(name, framework_names())));
  for (const auto& [constant, value] : constants.members())
    if (!change_trait(*framework, constant, value.at_least(0)))
      throw InputError(constants.where(), fmt::format("unknown key '{}'{}", constant,
                                                      suggestion(constant, trait_names())));
}

std::string efficiency_json(const DeviceType& type) {
  JsonObject object;
  const JsonValue device = parse_json(type.name, device_type_json(type));
  for (const auto& [constant, value] : device.at("efficiency").members())
    object.number(constant, value.number());
  return object.str();
}

std::string traits_json(Framework framework) {
  Job job;
  job.framework = framework;
  FrameworkTraits traits = traits_of(job);
  JsonObject object;
  for (const std::string_view name : trait_names()) object.number(name, *trait_named(traits, name));
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
    for (const auto& [name, constants] : frameworks->members()) apply_to_framework(name, constants);
}

std::string constants_json(const Catalogue& catalogue) {
  JsonObject devices;
  for (const DeviceEntry& entry : catalogue.devices)
    devices.json(entry.type.name, efficiency_json(entry.type));
  JsonObject frameworks;
  for (std::size_t i = 0; i < framework_names().size(); ++i)
    frameworks.json(framework_names()[i], traits_json(static_cast<Framework>(i)));
  return lay_out_json(
      JsonObject().json("devices", devices.str()).json("frameworks", frameworks.str()).str());
}

}  // namespace plait
