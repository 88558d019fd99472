#include "io/cluster/cluster_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "cluster/cluster_builder.h"
#include "io/cluster/device_json.h"

namespace plait {
namespace {

using Group = ClusterBuilder::Group;

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The devices of one entry of "nodes" and what follows from them when nothing else is said.
struct NodeKind {
  std::string name;  // "A100-80GB", "p4d.24xlarge": for nodes without a name of their own
  std::vector<Group> groups;
  Node node;
};

class ClusterReader {
 public:
  ClusterReader(const JsonValue& root, const Catalogue& catalogue)
      : root_(root), catalogue_(catalogue), builder_(root.text_or("name", "")) {}

  LoadedCluster read() {
    root_.allow_only({"plait_cluster", "name", "device_types", "zones", "zone_links",
                      "default_zone_link", "nodes"});
    root_.at("plait_cluster").integer(1, 1);
    if (const auto types = root_.find("device_types"))
      for (const JsonValue& object : named_entries(*types)) own_type(object);
    if (const auto zones = root_.find("zones"))
      for (const JsonValue& object : named_entries(*zones)) own_zone(object);
    else
      builder_.zone("default", root_.where());
    if (builder_.zone_count() == 0)
      throw InputError(root_.at("zones").where(), "must name at least one zone, or be left out");
    const std::vector<JsonValue> nodes = root_.at("nodes").items();
    if (nodes.empty()) throw InputError(root_.at("nodes").where(), "must name at least one node");
    for (const JsonValue& object : nodes) add_nodes(object);
    if (const auto links = root_.find("zone_links"))
      for (const JsonValue& object : links->items()) add_zone_link(object);
    join_zones();
    return {std::move(builder_).finish(root_.where()), std::move(warnings_)};
  }

 private:
  // A type of the file itself comes before one of the same name in the catalogue.
  void own_type(const JsonValue& object) {
    DeviceEntry entry = read_device_entry(object, catalogue_);
    for (const DeviceEntry& old : own_.devices)
      if (plain_name(old.type.name) == plain_name(entry.type.name))
        throw InputError(object.where(),
                         fmt::format("device type '{}' is described twice", entry.type.name));
    builder_.type(entry.type, object.where());
    own_.devices.push_back(std::move(entry));
  }

  const DeviceEntry& device(const JsonValue& name) const {
    if (const DeviceEntry* entry = lookup_device(own_, name.text())) return *entry;
    return find_device(catalogue_, name.text(), name.where());
  }

  void own_zone(const JsonValue& object) {
    object.allow_only({"name"});
    const std::string name = object.at("name").text();
    if (builder_.has_zone(name))
      throw InputError(object.where(), fmt::format("zone '{}' is named twice", name));
    builder_.zone(name, object.where());
  }

  int zone(const JsonValue& name) {
    if (!builder_.has_zone(name.text()))
      throw InputError(name.where(), fmt::format("zone '{}' is not among \"zones\"", name.text()));
    return builder_.zone(name.text(), name.where());
  }

  NodeKind rented(const JsonValue& object, const JsonValue& name) {
    if (object.find("device") || object.find("devices"))
      throw InputError(object.where(), "give 'instance' or 'device' and 'devices', not both");
    const Instance& instance = find_instance(catalogue_, name.text(), name.where());
    if (provider_.empty()) provider_ = instance.provider;
    if (provider_ != instance.provider && builder_.zone_count() < 2)
      throw InputError(name.where(), fmt::format("'{}' is of {}, other nodes are of {}, which are "
                                                 "not in one network: give them 'zones'",
                                                 instance.name, instance.provider, provider_));
    const DeviceEntry& entry = find_device(catalogue_, instance.device, name.where());
    const bool spot = object.boolean_or("spot", false);
    NodeKind out{instance.name,
                 {{builder_.type(entry.type, name.where()), instance.count}},
                 instance_node(instance, entry, spot)};
    if (spot && instance.spot.value == 0 && !object.find("price_usd_per_hour"))
      throw InputError(
          object.at("spot").where(),
          fmt::format("no spot price of '{}' is known; give price_usd_per_hour", instance.name));
    return out;
  }

  NodeKind alike(const JsonValue& object) {
    const DeviceEntry& entry = device(object.at("device"));
    const int count = object.integer_or("devices", 1, kMaxDevices, entry.type.per_node);
    return {entry.type.name,
            {{builder_.type(entry.type, object.where()), count}},
            usual_node(entry, count)};
  }

  // Several types in one node: the slowest link, the slowest network, the sum of the prices.
  NodeKind mixed(const JsonValue& list) {
    NodeKind out;
    int total = 0;
    for (const JsonValue& item : list.items()) {
      item.allow_only({"type", "count"});
      total = std::min(kMaxDevices, total + item.at("count").integer(1, kMaxDevices));
    }
    bool priced = true;
    for (const JsonValue& item : list.items()) {
      const DeviceEntry& entry = device(item.at("type"));
      const int count = item.at("count").integer(1, kMaxDevices);
      const Node part = usual_node(entry, count);
      const Link uplink = usual_node(entry, total).uplink;
      const bool first = out.groups.empty();
      out.node.intra = first ? part.intra : slower(out.node.intra, part.intra);
      out.node.uplink = first ? uplink : slower(out.node.uplink, uplink);
      out.node.price += part.price;
      priced = priced && part.price.value > 0;
      out.name += (first ? "" : "+") + entry.type.name;
      out.groups.push_back({builder_.type(entry.type, item.where()), count});
    }
    if (out.groups.empty()) throw InputError(list.where(), "must name at least one device");
    out.node.price = priced ? usd_per_hour(in_usd_per_hour(out.node.price)) : UsdPerSecond();
    return out;
  }

  NodeKind kind(const JsonValue& object) {
    const auto instance = object.find("instance");
    const auto devices = object.find("devices");
    if (instance) return rented(object, *instance);
    if (object.find("spot"))
      throw InputError(object.at("spot").where(), "goes with 'instance' only");
    if (devices && devices->is_array()) {
      if (object.find("device"))
        throw InputError(object.where(), "give 'device' or a list of 'devices', not both");
      return mixed(*devices);
    }
    if (!object.find("device"))
      throw InputError(object.where(),
                       "'device' is missing (or 'instance', or a list of 'devices')");
    return alike(object);
  }

  void add_nodes(const JsonValue& object) {
    object.allow_only({"name", "count", "device", "devices", "instance", "spot", "zone", "intra",
                       "network", "price_usd_per_hour"});
    NodeKind kind = this->kind(object);
    Node& node = kind.node;
    const auto link = [&](std::string_view key, Link& into) {
      if (const auto value = object.find(key)) {
        value->allow_only({"bandwidth_GBps", "bandwidth_Gbps", "latency_us"});
        into = read_link(*value, into);
      }
    };
    link("intra", node.intra);
    link("network", node.uplink);
    if (const auto price = object.find("price_usd_per_hour")) node.price = read_price(*price);
    const auto where = object.find("zone");
    if (where) node.zone = zone(*where);
    if (!where && builder_.zone_count() > 1)
      throw InputError(object.where(), "'zone' is missing: the file names more than one");
    const std::string name = object.text_or("name", "");
    const int count = object.integer_or("count", 1, kMaxDevices, 1);
    for (int i = 0; i < count; ++i) {
      node.name = name.empty() ? builder_.free_name(kind.name)
                  : count > 1  ? fmt::format("{}-{}", name, i)
                               : name;
      builder_.node(node, kind.groups, object.where());
    }
  }

  void add_zone_link(const JsonValue& object) {
    object.allow_only({"between", "bandwidth_GBps", "bandwidth_Gbps", "latency_us"});
    const std::vector<JsonValue> ends = object.at("between").items();
    if (ends.size() != 2) throw InputError(object.at("between").where(), "must name two zones");
    builder_.zone_link(zone(ends[0]), zone(ends[1]), read_link(object, kUsualZoneLink),
                       object.where());
  }

  // "default_zone_link" is a link, or "none": then only the nodes' own networks count.
  void join_zones() {
    const auto given = root_.find("default_zone_link");
    if (given && given->is_string()) {
      given->choice({"none"});
      return;
    }
    if (given) {
      given->allow_only({"bandwidth_GBps", "bandwidth_Gbps", "latency_us"});
      builder_.join_zones(read_link(*given, kUsualZoneLink));
      return;
    }
    for (const auto& [a, b] : builder_.join_zones(kUsualZoneLink))
      warnings_.push_back(assumed_zone_link(a, b));
  }

  JsonValue root_;
  const Catalogue& catalogue_;
  Catalogue own_;
  ClusterBuilder builder_;
  std::string provider_;  // of the first instance
  std::vector<std::string> warnings_;
};

void refuse_foreign(const JsonValue& root) {
  if (!root.is_object() || root.find("plait_cluster")) return;
  for (const auto& [host, value] : root.members())
    if (value.is_object() && value.find("instance_type"))
      throw InputError(root.where(),
                       "is a Metis clusterfile; give it as `clusterfile` and its hostfile as "
                       "`cluster`");
  throw InputError(root.where(),
                   "'plait_cluster' is missing: a cluster file starts with {\"plait_cluster\": 1, "
                   "\"nodes\": [...]}");
}

// The types of a node's devices, run by run.
std::vector<Group> groups_of(const Cluster& cluster, std::size_t begin, std::size_t end) {
  std::vector<Group> out;
  for (std::size_t i = begin; i < end; ++i) {
    if (out.empty() || out.back().type != cluster.devices[i].type)
      out.push_back({cluster.devices[i].type, 0});
    ++out.back().count;
  }
  return out;
}

struct WrittenNode {
  std::string name;  // as it is, or without the "-0" where count > 1
  int count = 1;
  std::string rest;  // all members but name and count
};

std::string node_members(const Cluster& cluster, const Node& node,
                         const std::vector<Group>& groups) {
  std::string devices;
  for (const Group& group : groups)
    devices += fmt::format("{}{{\"type\": {}, \"count\": {}}}", devices.empty() ? "" : ", ",
                           quoted(cluster.device_types[group.type].name), group.count);
  return fmt::format(
      "\"devices\": [{}], \"zone\": {}, \"intra\": {{{}}}, \"network\": {{{}}}, "
      "\"price_usd_per_hour\": {}",
      devices, quoted(cluster.zones[node.zone]), link_json(node.intra), link_json(node.uplink),
      in_usd_per_hour(node.price));
}

// Entries of "nodes": nodes that are alike and numbered from 0 without a gap become one.
std::vector<WrittenNode> written_nodes(const Cluster& cluster) {
  std::vector<WrittenNode> out;
  std::size_t begin = 0;
  for (std::size_t n = 0; n < cluster.nodes.size(); ++n) {
    std::size_t end = begin;
    while (end < cluster.devices.size() && cluster.devices[end].node == static_cast<int>(n)) ++end;
    const Node& node = cluster.nodes[n];
    const std::string rest = node_members(cluster, node, groups_of(cluster, begin, end));
    begin = end;
    if (!out.empty() && out.back().rest == rest) {
      WrittenNode& last = out.back();
      const bool first = last.count == 1 && last.name.ends_with("-0");
      const std::string stem = first ? last.name.substr(0, last.name.size() - 2) : last.name;
      if ((first || last.count > 1) && node.name == fmt::format("{}-{}", stem, last.count)) {
        last.name = stem;
        ++last.count;
        continue;
      }
    }
    out.push_back({node.name, 1, rest});
  }
  return out;
}

std::string list_of(const std::vector<std::string>& items) {
  if (items.empty()) return "[]";
  return fmt::format("[\n    {}\n  ]", fmt::join(items, ",\n    "));
}

}  // namespace

LoadedCluster read_cluster_json(const JsonValue& root, const Catalogue& catalogue) {
  refuse_foreign(root);
  return ClusterReader(root, catalogue).read();
}

std::string cluster_to_json(const Cluster& cluster) {
  std::vector<std::string> types, zones, links, nodes;
  for (const DeviceType& type : cluster.device_types) types.push_back(device_type_json(type));
  for (const std::string& zone : cluster.zones)
    zones.push_back(fmt::format("{{\"name\": {}}}", quoted(zone)));
  for (const ZoneLink& link : cluster.zone_links)
    links.push_back(fmt::format("{{\"between\": [{}, {}], {}}}", quoted(cluster.zones[link.a]),
                                quoted(cluster.zones[link.b]), link_json(link.link)));
  for (const WrittenNode& node : written_nodes(cluster))
    nodes.push_back(fmt::format("{{\"name\": {}, {}{}}}", quoted(node.name),
                                node.count > 1 ? fmt::format("\"count\": {}, ", node.count) : "",
                                node.rest));
  return fmt::format(
      "{{\n  \"plait_cluster\": 1,\n  \"name\": {},\n  \"device_types\": {},\n  \"zones\": {},\n"
      "  \"zone_links\": {},\n  \"default_zone_link\": \"none\",\n  \"nodes\": {}\n}}\n",
      quoted(cluster.name), list_of(types), list_of(zones), list_of(links), list_of(nodes));
}

}  // namespace plait
