#pragma once

#include <string>
#include <vector>

#include "io/cluster/catalogue.h"
#include "report/table.h"

namespace plait {

// A model that is known by name.
struct KnownModel {
  std::string name;
  std::vector<std::string> aliases;
  std::string source;
  double parameters = 0;
  int layers = 0;
  int sequence_length = 0;
};
std::vector<KnownModel> known_models();
std::string to_json(const std::vector<KnownModel>& models);
std::string as_text(const std::vector<KnownModel>& models, const Style& style);

// Device types, cloud instances and frameworks that are known by name are those of a catalogue
// (load_catalogue).
std::string to_json(const std::vector<DeviceEntry>& devices);
std::string as_text(const std::vector<DeviceEntry>& devices, const Style& style);
std::string to_json(const std::vector<Instance>& instances);
std::string as_text(const std::vector<Instance>& instances, const Style& style);
std::string to_json(const std::vector<FrameworkEntry>& frameworks);
std::string as_text(const std::vector<FrameworkEntry>& frameworks, const Style& style);

}  // namespace plait
