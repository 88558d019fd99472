#include "app/request/prices.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "app/request/request_error.h"
#include "io/format/json_reader.h"

namespace plait {
namespace {

[[noreturn]] void refuse_name(const std::string& name, const Catalogue& catalogue) {
  std::vector<std::string_view> known = device_names(catalogue);
  for (const std::string_view each : instance_names(catalogue)) known.push_back(each);
  throw RequestError("price", fmt::format("'{}' is neither a device type nor an instance{}",
                                          name.substr(0, 60), suggestion(name, known)));
}

bool has_type(const Cluster& cluster, const std::string& name) {
  return std::ranges::any_of(cluster.device_types,
                             [&](const DeviceType& type) { return type.name == name; });
}

}  // namespace

void set_prices(const std::vector<StatedPrice>& prices, Catalogue& catalogue) {
  for (const auto& [name, price] : prices) {
    if (const DeviceEntry* known = lookup_device(catalogue, name)) {
      const std::string device = known->type.name;
      for (DeviceEntry& entry : catalogue.devices)
        if (entry.type.name == device) entry.type.price = price;
      for (Instance& instance : catalogue.instances)
        if (instance.device == device) instance.price = instance.count * price;
    } else if (const Instance* rented = lookup_instance(catalogue, name)) {
      catalogue.instances[rented - catalogue.instances.data()].price = price;
    } else {
      refuse_name(name, catalogue);
    }
  }
}

void set_prices(const std::vector<StatedPrice>& prices, const Catalogue& catalogue,
                Cluster& cluster) {
  std::map<std::string, UsdPerSecond> by_type;
  for (const auto& [name, price] : prices) {
    const DeviceEntry* device = lookup_device(catalogue, name);
    const Instance* instance = lookup_instance(catalogue, name);
    if (device == nullptr && instance == nullptr) refuse_name(name, catalogue);
    const std::string& full = device != nullptr ? device->type.name : instance->name;
    const bool there = device != nullptr
                           ? has_type(cluster, full)
                           : std::ranges::any_of(cluster.nodes, [&](const Node& node) {
                               return node.name.starts_with(full);
                             });
    if (!there) throw RequestError("price", fmt::format("there is no '{}' in the cluster", full));
    if (device != nullptr) by_type[full] = price;
  }
  if (by_type.empty()) return;
  std::vector<UsdPerSecond> sums(cluster.nodes.size());
  std::vector<bool> stated(cluster.nodes.size(), true);
  for (const Device& device : cluster.devices) {
    const auto found = by_type.find(cluster.device_types[device.type].name);
    if (found == by_type.end())
      stated[device.node] = false;
    else
      sums[device.node] += found->second;
  }
  for (std::size_t n = 0; n < sums.size(); ++n)
    if (stated[n]) cluster.nodes[n].price = sums[n];
}

}  // namespace plait
