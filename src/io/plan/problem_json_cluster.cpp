#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "cluster/cluster_builder.h"
#include "io/format/json_keys.h"
#include "io/format/json_writer.h"
#include "io/plan/problem_json.h"
#include "plan/names.h"

namespace plait {
namespace {

std::string dump_link(const Link& link) {
  const auto& [bandwidth, latency] = link;
  return JsonObject()
      .number("bandwidth_Bps", bandwidth.value)
      .number("latency_s", latency.value)
      .str();
}

Link restore_link(const JsonValue& json) {
  json.allow_only({"bandwidth_Bps", "latency_s"});
  return {BytesPerSecond(json.at("bandwidth_Bps").positive()),
          Seconds(json.at("latency_s").at_least(0))};
}

enum class Range { from_zero, above_zero, fraction };  // a fraction is above 0, too, and at most 1

// Every constant of an Efficiency. Left out of a file, it has its default.
struct EfficiencyNumber {
  const char* key;
  Range range;
  double& (*of)(Efficiency&);
};
constexpr EfficiencyNumber kEfficiencyNumbers[] = {
    {"matmul", Range::fraction, [](Efficiency& e) -> double& { return e.matmul; }},
    {"matmul_inner", Range::from_zero, [](Efficiency& e) -> double& { return e.matmul_inner; }},
    {"matmul_tail", Range::from_zero, [](Efficiency& e) -> double& { return e.wave_tail; }},
    {"misaligned", Range::from_zero, [](Efficiency& e) -> double& { return e.misaligned; }},
    {"fp8", Range::above_zero, [](Efficiency& e) -> double& { return e.fp8; }},
    {"fp4", Range::above_zero, [](Efficiency& e) -> double& { return e.fp4; }},
    {"batched", Range::fraction, [](Efficiency& e) -> double& { return e.batched; }},
    {"batched_misaligned", Range::fraction,
     [](Efficiency& e) -> double& { return e.batched_misaligned; }},
    {"attention", Range::fraction, [](Efficiency& e) -> double& { return e.attention; }},
    {"attention_backward", Range::above_zero,
     [](Efficiency& e) -> double& { return e.attention_backward; }},
    {"portable_attention", Range::fraction,
     [](Efficiency& e) -> double& { return e.portable_attention; }},
    {"early_attention", Range::fraction,
     [](Efficiency& e) -> double& { return e.early_attention; }},
    {"memory", Range::fraction, [](Efficiency& e) -> double& { return e.memory; }},
    {"optimizer", Range::fraction, [](Efficiency& e) -> double& { return e.optimizer; }},
    {"kernel_s", Range::from_zero, [](Efficiency& e) -> double& { return e.kernel.value; }},
    {"intra", Range::fraction, [](Efficiency& e) -> double& { return e.intra; }},
    {"inter", Range::fraction, [](Efficiency& e) -> double& { return e.inter; }},
    {"spread", Range::from_zero, [](Efficiency& e) -> double& { return e.spread; }},
};

std::string dump_efficiency(Efficiency efficiency) {
  // Breaks the build when Efficiency gains a field: it belongs into kEfficiencyNumbers.
  [[maybe_unused]] const auto& [matmul, matmul_inner, matmul_tail, misaligned, fp8, fp4, batched,
                                batched_misaligned, attention, attention_backward,
                                portable_attention, early_attention, memory, optimizer, kernel,
                                intra, inter, spread] = efficiency;
  JsonObject json;
  for (const EfficiencyNumber& number : kEfficiencyNumbers)
    json.number(number.key, number.of(efficiency));
  return json.str();
}

Efficiency restore_efficiency(const JsonValue& json) {
  Efficiency efficiency;
  std::vector<std::string_view> keys;
  for (const EfficiencyNumber& number : kEfficiencyNumbers) {
    keys.emplace_back(number.key);
    const auto value = json.find(number.key);
    if (!value) continue;
    number.of(efficiency) =
        number.range == Range::from_zero ? value->at_least(0) : value->positive();
    if (number.range == Range::fraction && value->number() > 1)
      throw InputError(value->where(), "must be at most 1");
  }
  allow_only_of(json, keys);
  return efficiency;
}

std::string dump_type(const DeviceType& type) {
  const auto& [name, memory, memory_bandwidth, type_peak, multiprocessors, intra, per_node,
               switched, efficiency, price, host_link, host_memory, collectives, basis] = type;
  JsonObject peak;
  for (int i = 0; i < kDTypes; ++i)
    if (type_peak[i].value != 0) peak.number(name_of(static_cast<DType>(i)), type_peak[i].value);
  JsonObject out;
  out.text("name", name)
      .number("memory_B", memory.value)
      .number("memory_bandwidth_Bps", memory_bandwidth.value)
      .json("peak_flops_per_s", peak.str())
      .number("multiprocessors", multiprocessors)
      .json("intra", dump_link(intra))
      .number("per_node", per_node)
      .boolean("switched", switched)
      .json("efficiency", dump_efficiency(efficiency))
      .number("price_usd_per_s", price.value)
      .number("host_link_Bps", host_link.value)
      .number("host_memory_Bps", host_memory.value);
  if (collectives != DeviceType().collectives) out.text("collectives", collectives);
  return out.text("basis", basis).str();
}

DeviceType restore_type(const JsonValue& json) {
  json.allow_only({"name", "memory_B", "memory_bandwidth_Bps", "peak_flops_per_s",
                   "multiprocessors", "intra", "per_node", "switched", "efficiency",
                   "price_usd_per_s", "host_link_Bps", "host_memory_Bps", "collectives", "basis"});
  DeviceType type;
  type.name = json.at("name").text();
  type.memory = Bytes(json.at("memory_B").positive());
  type.memory_bandwidth = BytesPerSecond(json.at("memory_bandwidth_Bps").positive());
  allow_only_of(json.at("peak_flops_per_s"), dtype_names());
  double best = 0;
  for (const auto& [dtype, peak] : json.at("peak_flops_per_s").members()) {
    type.peak[static_cast<int>(*dtype_named(dtype))] = FlopsPerSecond(peak.at_least(0));
    best = std::max(best, peak.number());
  }
  if (best <= 0)
    throw InputError(json.at("peak_flops_per_s").where(), "needs a positive peak for one dtype");
  type.multiprocessors = json.at("multiprocessors").integer(1, kMaxDevices);
  type.intra = restore_link(json.at("intra"));
  type.per_node = json.at("per_node").integer(1, kMaxDevices);
  type.switched = json.boolean_or("switched", true);
  type.efficiency = restore_efficiency(json.at("efficiency"));
  type.price = UsdPerSecond(json.at("price_usd_per_s").at_least(0));
  if (const auto rate = json.find("host_link_Bps"))
    type.host_link = BytesPerSecond(rate->positive());
  if (const auto rate = json.find("host_memory_Bps"))
    type.host_memory = BytesPerSecond(rate->positive());
  type.collectives = json.text_or("collectives", type.collectives);
  type.basis = json.text_or("basis", "");
  return type;
}

// A name that ends in a number, such as "H100-7".
struct NumberedName {
  std::string stem;
  int number = 0;

  std::string after(int more) const { return stem + std::to_string(number + more); }
};

std::optional<NumberedName> numbered(const std::string& name) {
  constexpr std::size_t kMostDigits = 8;  // numbers of that many can be counted on as int
  const std::size_t stem = name.find_last_not_of("0123456789") + 1;
  const std::size_t digits = name.size() - stem;
  if (digits == 0 || digits > kMostDigits || (digits > 1 && name[stem] == '0')) return {};
  return NumberedName{name.substr(0, stem), std::stoi(name.substr(stem))};
}

std::string dump_node(const Node& node, int count) {
  const auto& [name, zone, intra, uplink, price] = node;
  JsonObject json;
  json.text("name", name)
      .number("zone", zone)
      .json("intra", dump_link(intra))
      .json("uplink", dump_link(uplink))
      .number("price_usd_per_s", price.value);
  if (count > 1) json.number("count", count);
  return json.str();
}

// How many nodes from this one on are alike but for their names, which are numbered without a gap.
int alike_from(const std::vector<Node>& nodes, std::size_t begin) {
  const auto name = numbered(nodes[begin].name);
  if (!name) return 1;
  Node next = nodes[begin];
  int count = 0;
  do {
    next.name = name->after(++count);
  } while (begin + count < nodes.size() && nodes[begin + count] == next);
  return count;
}

// Files are for people, too: so many nodes of a kind stand one by one. More become one entry, since
// a file with a million of them could not be read.
constexpr int kOneByOne = 256;

std::string dump_nodes(const std::vector<Node>& nodes) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < nodes.size();) {
    const int alike = alike_from(nodes, i);
    if (alike > kOneByOne) texts.push_back(dump_node(nodes[i], alike));
    for (int k = 0; alike <= kOneByOne && k < alike; ++k)
      texts.push_back(dump_node(nodes[i + k], 1));
    i += alike;
  }
  return json_list(texts);
}

Node restore_node(const JsonValue& json, int zones) {
  json.allow_only({"name", "zone", "intra", "uplink", "price_usd_per_s", "count"});
  Node node;
  node.name = json.at("name").text();
  node.zone = json.at("zone").integer(0, zones - 1);
  node.intra = restore_link(json.at("intra"));
  node.uplink = restore_link(json.at("uplink"));
  node.price = UsdPerSecond(json.at("price_usd_per_s").at_least(0));
  return node;
}

// With "count" it is that many, numbered from its name on.
void restore_nodes(const JsonValue& json, int zones, std::vector<Node>& nodes) {
  Node node = restore_node(json, zones);
  const int count = json.integer_or("count", 1, kMaxDevices, 1);
  const auto name = numbered(node.name);
  if (count > 1 && !name)
    throw InputError(json.at("name").where(), "must end in a number where there is a 'count'");
  if (count > kMaxDevices - static_cast<int>(nodes.size()))
    throw InputError(json.where(), fmt::format("makes more than {} nodes", kMaxDevices));
  for (int i = 0; i < count; ++i) {
    if (i > 0) node.name = name->after(i);
    nodes.push_back(node);
  }
}

std::string dump_zone_link(const ZoneLink& zone_link) {
  const auto& [a, b, link] = zone_link;
  return JsonObject().number("a", a).number("b", b).json("link", dump_link(link)).str();
}

ZoneLink restore_zone_link(const JsonValue& json, int zones) {
  json.allow_only({"a", "b", "link"});
  return {.a = json.at("a").integer(0, zones - 1),
          .b = json.at("b").integer(0, zones - 1),
          .link = restore_link(json.at("link"))};
}

// Runs of equal devices: {"type": 0, "node": 3, "count": 8}; many nodes with such runs are one
// entry:
// {"type": 0, "node": 3, "nodes": 1000, "count": 8}.
struct DeviceRun {
  Device device;
  int nodes = 1;
  int count = 0;  // on each
};

std::vector<DeviceRun> runs_of(const std::vector<Device>& devices) {
  std::vector<DeviceRun> runs;
  for (const Device& device : devices) {
    if (runs.empty() || runs.back().device != device) runs.push_back({device});
    ++runs.back().count;
  }
  return runs;
}

std::string dump_run(const DeviceRun& run) {
  return fmt::format("{{\"type\": {}, \"node\": {}, {}\"count\": {}}}", run.device.type,
                     run.device.node,
                     run.nodes > 1 ? fmt::format("\"nodes\": {}, ", run.nodes) : "", run.count);
}

std::string dump_devices(const std::vector<Device>& devices) {
  const std::vector<DeviceRun> runs = runs_of(devices);
  const auto follows = [](const DeviceRun& run, const DeviceRun& first, int later) {
    return run.device == Device{first.device.type, first.device.node + later} &&
           run.count == first.count;
  };
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < runs.size();) {
    int alike = 1;
    while (i + alike < runs.size() && follows(runs[i + alike], runs[i], alike)) ++alike;
    if (alike > kOneByOne) texts.push_back(dump_run({runs[i].device, alike, runs[i].count}));
    for (int k = 0; alike <= kOneByOne && k < alike; ++k) texts.push_back(dump_run(runs[i + k]));
    i += alike;
  }
  return json_list(texts);
}

DeviceRun restore_run(const JsonValue& json, int types, int nodes) {
  json.allow_only({"type", "node", "nodes", "count"});
  DeviceRun run;
  run.device = {.type = json.at("type").integer(0, types - 1),
                .node = json.at("node").integer(0, nodes - 1)};
  run.nodes = json.integer_or("nodes", 1, nodes - run.device.node, 1);
  run.count = json.at("count").integer(1, kMaxDevices);
  return run;
}

std::vector<Device> restore_devices(const JsonValue& json, int types, int nodes) {
  std::vector<Device> devices;
  std::vector<bool> left(nodes);  // nodes whose devices have ended
  std::vector<bool> held(nodes);  // nodes with devices
  for (const JsonValue& item : json.items()) {
    const DeviceRun run = restore_run(item, types, nodes);
    if (run.count > (kMaxDevices - static_cast<int>(devices.size())) / run.nodes)
      throw InputError(item.where(), fmt::format("makes more than {} devices", kMaxDevices));
    for (int i = 0; i < run.nodes; ++i) {
      const Device device{run.device.type, run.device.node + i};
      if (!devices.empty() && devices.back().node != device.node) left[devices.back().node] = true;
      if (left[device.node])
        throw InputError(item.at("node").where(), "the devices of a node must follow each other");
      devices.insert(devices.end(), run.count, device);
      held[device.node] = true;
    }
  }
  if (const auto bare = std::ranges::find(held, false); bare != held.end() && !devices.empty())
    throw InputError(json.where(), fmt::format("has none on node {}, which is to have one at least",
                                               bare - held.begin()));
  if (devices.empty()) throw InputError(json.where(), "a cluster has at least one device");
  return devices;
}

template <typename Value, typename Dump>
std::string dump_all(const std::vector<Value>& values, const Dump& dump) {
  std::vector<std::string> texts;
  for (const Value& value : values) texts.push_back(dump(value));
  return json_list(texts);
}

}  // namespace

std::string dump_cluster(const Cluster& cluster) {
  // What is a part is so in the course of a search only.
  [[maybe_unused]] const auto& [name, device_types, zones, zone_links, nodes, devices, is_part] =
      cluster;
  return JsonObject()
      .text("name", name)
      .json("device_types", dump_all(device_types, dump_type))
      .json("zones", dump_all(zones, json_text))
      .json("zone_links", dump_all(zone_links, dump_zone_link))
      .json("nodes", dump_nodes(nodes))
      .json("devices", dump_devices(devices))
      .str();
}

Cluster restore_cluster(const JsonValue& json) {
  json.allow_only({"name", "device_types", "zones", "zone_links", "nodes", "devices"});
  Cluster cluster;
  cluster.name = json.at("name").text();
  for (const JsonValue& type : json.at("device_types").items())
    cluster.device_types.push_back(restore_type(type));
  for (const JsonValue& zone : json.at("zones").items()) cluster.zones.push_back(zone.text());
  const int zones = static_cast<int>(cluster.zones.size());
  if (const auto links = json.find("zone_links"))
    for (const JsonValue& link : links->items())
      cluster.zone_links.push_back(restore_zone_link(link, zones));
  for (const JsonValue& node : json.at("nodes").items()) restore_nodes(node, zones, cluster.nodes);
  cluster.devices =
      restore_devices(json.at("devices"), static_cast<int>(cluster.device_types.size()),
                      static_cast<int>(cluster.nodes.size()));
  return cluster;
}

}  // namespace plait
