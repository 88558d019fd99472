#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "io/format/json_reader.h"
#include "io/framework/framework_json.h"

namespace plait {

// A row of data/catalogue/devices.json: a device type, its other names, and the server it usually
// sits in.
struct DeviceEntry {
  DeviceType type;
  std::vector<std::string> aliases;
  std::string link_kind;  // "nvlink", "pcie", "infinity fabric"
  Link network;           // of one device where network_per_device, else of one node
  bool network_per_device = false;
  std::string usual_instance;  // where type.price comes from; "" = stated, or unknown
  // Of two and more devices, where `type.efficiency` was measured on one alone.
  std::optional<Efficiency> in_clusters;
  std::string basis_in_clusters;  // "copied from H100"
  std::string source;
};

// A row of data/catalogue/instances.json: what a cloud rents out as one machine.
struct Instance {
  std::string name;
  std::string provider;
  std::string device;  // a device name of the catalogue
  int count = 0;
  Link network;
  UsdPerSecond price;  // on demand; 0 = unknown
  UsdPerSecond spot;   // 0 = unknown
  std::string source;
  std::string date;
};

struct Catalogue {
  std::vector<DeviceEntry> devices;
  std::vector<Instance> instances;
  std::vector<FrameworkEntry> frameworks;  // the first is taken when none is named
};

// What is compiled in. Prices of devices are those of their usual instance, divided.
const Catalogue& builtin_catalogue();

// The built-in catalogue and then each file in order; an entry replaces an earlier one of its name.
// Format: {"plait_catalogue": 1, "devices": [..], "instances": [..], "frameworks": [..]}, see
// docs/files.md.
Catalogue load_catalogue(const std::vector<std::string>& paths);

// By name or alias. Case, '-', '_' and blanks do not count, nor do the makers' "NVIDIA", "Tesla"
// and "AMD Instinct" in front and the board: "a100_80gb" and "NVIDIA A100-SXM4-80GB" find
// A100-80GB, "MI300X OAM" finds MI300X. nullptr = none.
const DeviceEntry* lookup_device(const Catalogue& catalogue, std::string_view name);
const Instance* lookup_instance(const Catalogue& catalogue, std::string_view name);

// The same, but InputError at `where` with the nearest known name when there is none.
const DeviceEntry& find_device(const Catalogue& catalogue, std::string_view name,
                               const std::string& where);
const Instance& find_instance(const Catalogue& catalogue, std::string_view name,
                              const std::string& where);

// Every name and alias that lookup_device or lookup_instance knows, for suggestions.
std::vector<std::string_view> device_names(const Catalogue& catalogue);
std::vector<std::string_view> instance_names(const Catalogue& catalogue);

// By name, else by alias as devices are; case does not matter and "_" stands for "-". "" is the
// first. nullptr = none.
const Framework* lookup_framework(const Catalogue& catalogue, std::string_view name);
// The same, but InputError at `where` that names all there are.
const Framework& find_framework(const Catalogue& catalogue, std::string_view name,
                                const std::string& where);
std::vector<std::string_view> framework_names(const Catalogue& catalogue);

// One device of a file: an entry of its own, or `"like": "A100-80GB"` and what differs.
DeviceEntry read_device_entry(const JsonValue& object, const Catalogue& catalogue);

// A node of `count` such devices when nothing else is said: the type's own link, its network for
// that many devices, its price times count. Name and zone are left to the caller.
Node usual_node(const DeviceEntry& entry, int count);

// A rented machine as a node, at the on-demand price or, with `spot`, at the spot price.
Node instance_node(const Instance& instance, const DeviceEntry& device, bool spot = false);

// "A100-80GB" -> "a10080gb": how names are compared.
std::string plain_name(std::string_view name);

}  // namespace plait
