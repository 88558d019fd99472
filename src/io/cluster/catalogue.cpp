#include "io/cluster/catalogue.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <regex>
#include <utility>

#include "base/error.h"
#include "io/cluster/device_json.h"
#include "io/format/embedded.h"

namespace plait {
namespace {

// Between nodes of a type whose file does not say. Set, not measured: 100 Gbit/s Ethernet of a node
// with the 30 us that TCP takes over it; whoever knows better writes it in the file.
constexpr Link kUnknownNetwork = {BytesPerSecond(12.5e9), Seconds(30e-6)};

Instance read_instance(const JsonValue& object, const Catalogue& catalogue) {
  object.allow_only({"name", "provider", "device", "count", "network", "usd_per_hour",
                     "spot_usd_per_hour", "source", "date", "note"});
  Instance out;
  out.name = object.at("name").text();
  out.provider = object.text_or("provider", "");
  const DeviceEntry& device =
      find_device(catalogue, object.at("device").text(), object.at("device").where());
  out.device = device.type.name;
  out.count = object.at("count").integer(1, 1'000'000);
  out.network = usual_node(device, out.count).uplink;
  if (const auto network = object.find("network")) {
    network->allow_only({"bandwidth_GBps", "bandwidth_Gbps", "latency_us"});
    out.network = read_link(*network, out.network);
  }
  if (const auto price = object.find("usd_per_hour")) out.price = read_price(*price);
  if (const auto spot = object.find("spot_usd_per_hour")) out.spot = read_price(*spot);
  out.source = object.text_or("source", "");
  out.date = object.text_or("date", "");
  return out;
}

template <typename Entry, typename NameOf>
void put(std::vector<Entry>& entries, Entry entry, const NameOf& name_of) {
  const std::string name = plain_name(name_of(entry));
  for (Entry& old : entries)
    if (plain_name(name_of(old)) == name) {
      old = std::move(entry);
      return;
    }
  entries.push_back(std::move(entry));
}

// Reads the frameworks of a file. An entry may be like one of the same file, before or after it, or
// like one that was known before.
class FrameworkReader {
 public:
  FrameworkReader(const Catalogue& before, const JsonValue& list) : before_(before) {
    for (const JsonValue& object : list.items()) {
      const JsonValue name = object.at("name");
      for (const auto& [other, entry] : objects_)
        if (other == name.text()) throw InputError(name.where(), "is the name of two entries");
      objects_.emplace_back(name.text(), object);
    }
    read_.resize(objects_.size());
    reading_.resize(objects_.size(), false);
  }

  std::vector<FrameworkEntry> entries() {
    std::vector<FrameworkEntry> out;
    for (std::size_t i = 0; i < objects_.size(); ++i) out.push_back(entry(i));
    return out;
  }

 private:
  const FrameworkEntry& entry(std::size_t i) {
    if (read_[i]) return *read_[i];
    reading_[i] = true;
    read_[i] = read_framework_entry(
        objects_[i].second,
        [this](const JsonValue& name) -> const Framework& { return known(name); });
    reading_[i] = false;
    return *read_[i];
  }

  const Framework& known(const JsonValue& name) {
    for (std::size_t i = 0; i < objects_.size(); ++i) {
      if (objects_[i].first != name.text()) continue;
      if (!reading_[i]) return entry(i).framework;
      // An entry that changes one of the same name is like the one before.
      if (const Framework* older = lookup_framework(before_, name.text())) return *older;
      throw InputError(name.where(), fmt::format("'{}' is like itself", name.text()));
    }
    return find_framework(before_, name.text(), name.where());
  }

  const Catalogue& before_;
  std::vector<std::pair<std::string, JsonValue>> objects_;  // by name
  std::vector<std::optional<FrameworkEntry>> read_;
  std::vector<bool> reading_;
};

bool same_word(std::string_view a, std::string_view b) {
  const auto plain = [](char c) {
    return c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  };
  return std::ranges::equal(a, b, {}, plain, plain);
}

void add_file(Catalogue& catalogue, const JsonValue& root) {
  root.allow_only({"plait_catalogue", "devices", "instances", "frameworks"});
  root.at("plait_catalogue").integer(1, 1);
  if (const auto devices = root.find("devices"))
    for (const JsonValue& device : named_entries(*devices))
      put(catalogue.devices, read_device_entry(device, catalogue),
          [](const DeviceEntry& e) { return e.type.name; });
  if (const auto instances = root.find("instances"))
    for (const JsonValue& instance : named_entries(*instances))
      put(catalogue.instances, read_instance(instance, catalogue),
          [](const Instance& e) { return e.name; });
  if (const auto frameworks = root.find("frameworks"))
    for (FrameworkEntry& entry : FrameworkReader(catalogue, *frameworks).entries())
      put(catalogue.frameworks, std::move(entry),
          [](const FrameworkEntry& e) { return e.framework.name; });
}

// A device's price is its share of its usual instance; anew for each file, which may change prices.
void price_devices(Catalogue& catalogue) {
  for (DeviceEntry& entry : catalogue.devices) {
    if (entry.usual_instance.empty()) continue;
    const Instance& instance = find_instance(
        catalogue, entry.usual_instance, entry.type.name + " (usual_instance in the catalogue)");
    entry.type.price = usd_per_hour(in_usd_per_hour(instance.price) / instance.count);
  }
}

Catalogue read_builtin() {
  Catalogue out;
  for (const char* name : {"devices.json", "instances.json", "frameworks.json"})
    add_file(out, parse_json(name, embedded_file(name)));
  price_devices(out);
  return out;
}

}  // namespace

const Catalogue& builtin_catalogue() {
  static const Catalogue catalogue = read_builtin();
  return catalogue;
}

Catalogue load_catalogue(const std::vector<std::string>& paths) {
  Catalogue out = builtin_catalogue();
  for (const std::string& path : paths) add_file(out, read_json_document(path, "catalogue"));
  price_devices(out);
  return out;
}

std::string plain_name(std::string_view name) {
  std::string out;
  for (const char c : name)
    if (c != '-' && c != '_' && c != ' ')
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const std::string_view maker : {"nvidia", "amd", "instinct", "tesla", "geforce"})
    if (out.starts_with(maker)) out.erase(0, maker.size());
  return out;
}

namespace {

constexpr std::size_t kLongestName = 64;

// "MI300X OAM", "H100 SXM5": the name without the board that the chip comes on; "" = has none.
std::string without_board(std::string_view name) {
  if (name.size() > kLongestName) return "";
  static const std::regex board(R"([-_ ](?:SXM\d?|OAM|HBM\de?|GPU)(?![A-Za-z0-9]))",
                                std::regex::icase);
  std::string rest = std::regex_replace(std::string(name), board, "");
  return rest == name ? "" : rest;
}

}  // namespace

const DeviceEntry* lookup_device(const Catalogue& catalogue, std::string_view name) {
  for (const DeviceEntry& entry : catalogue.devices)  // the common case, without copies
    if (entry.type.name == name) return &entry;
  const std::string plain = plain_name(name);
  for (const DeviceEntry& entry : catalogue.devices)
    if (plain_name(entry.type.name) == plain) return &entry;
  for (const DeviceEntry& entry : catalogue.devices)
    for (const std::string& alias : entry.aliases)
      if (plain_name(alias) == plain) return &entry;
  const std::string chip = without_board(name);
  return chip.empty() ? nullptr : lookup_device(catalogue, chip);
}

const Instance* lookup_instance(const Catalogue& catalogue, std::string_view name) {
  const std::string plain = plain_name(name);
  const std::string azure = plain_name("Standard") + plain;
  for (const Instance& instance : catalogue.instances) {
    const std::string known = plain_name(instance.name);
    if (known == plain || known == azure) return &instance;
  }
  return nullptr;
}

std::vector<std::string_view> device_names(const Catalogue& catalogue) {
  std::vector<std::string_view> out;
  for (const DeviceEntry& entry : catalogue.devices) {
    out.push_back(entry.type.name);
    out.insert(out.end(), entry.aliases.begin(), entry.aliases.end());
  }
  return out;
}

std::vector<std::string_view> instance_names(const Catalogue& catalogue) {
  std::vector<std::string_view> out;
  for (const Instance& instance : catalogue.instances) out.push_back(instance.name);
  return out;
}

const DeviceEntry& find_device(const Catalogue& catalogue, std::string_view name,
                               const std::string& where) {
  if (const DeviceEntry* entry = lookup_device(catalogue, name)) return *entry;
  std::vector<std::string_view> known;
  for (const DeviceEntry& entry : catalogue.devices) known.push_back(entry.type.name);
  throw InputError(where, fmt::format("unknown device type '{}'{}; `plait devices` lists them",
                                      name, suggestion(name, known)));
}

const Instance& find_instance(const Catalogue& catalogue, std::string_view name,
                              const std::string& where) {
  if (const Instance* instance = lookup_instance(catalogue, name)) return *instance;
  throw InputError(where, fmt::format("unknown instance '{}'{}; `plait instances` lists them", name,
                                      suggestion(name, instance_names(catalogue))));
}

const Framework* lookup_framework(const Catalogue& catalogue, std::string_view name) {
  for (const FrameworkEntry& entry : catalogue.frameworks)
    if (name.empty() || same_word(entry.framework.name, name)) return &entry.framework;
  const std::string plain = plain_name(name);
  for (const FrameworkEntry& entry : catalogue.frameworks)
    for (const std::string& alias : entry.aliases)
      if (plain_name(alias) == plain) return &entry.framework;
  return nullptr;
}

namespace {

// Programs that people name which are more, or other, than a training step.
void refuse_other_programs(std::string_view name, const std::string& where) {
  struct Other {
    std::vector<std::string_view> names;
    std::string_view words;
  };
  static const Other kOthers[] = {
      {{"verl", "OpenRLHF", "NeMo-RL", "trlX", "SkyRL", "AReaL", "slime"},
       "samples texts between its steps, which is not predicted; its training steps are those of "
       "fsdp or megatron"},
      {{"vLLM", "SGLang", "TensorRT-LLM", "TGI", "llama.cpp", "Ollama"},
       "serves models; plait plans training"},
      {{"zero", "zero1", "zero2", "zero3", "ZeRO-1", "ZeRO-2", "ZeRO-3"},
       "is a way to cut states that several programs have: deepspeed or fsdp, with `zero` 1, 2 or "
       "3"}};
  const std::string plain = plain_name(name);
  for (const Other& other : kOthers)
    for (const std::string_view own : other.names)
      if (plain_name(own) == plain) throw InputError(where, fmt::format("{} {}", own, other.words));
}

}  // namespace

const Framework& find_framework(const Catalogue& catalogue, std::string_view name,
                                const std::string& where) {
  if (const Framework* framework = lookup_framework(catalogue, name)) return *framework;
  refuse_other_programs(name, where);
  const std::vector<std::string_view> known = framework_names(catalogue);
  std::vector<std::string_view> near = known;
  for (const FrameworkEntry& entry : catalogue.frameworks)
    near.insert(near.end(), entry.aliases.begin(), entry.aliases.end());
  throw InputError(where, fmt::format("must be one of {}, is '{}'{}; `plait frameworks` lists them",
                                      fmt::join(known, ", "), name,
                                      name.size() > 1 ? suggestion(name, near) : ""));
}

std::vector<std::string_view> framework_names(const Catalogue& catalogue) {
  std::vector<std::string_view> out;
  for (const FrameworkEntry& entry : catalogue.frameworks) out.push_back(entry.framework.name);
  return out;
}

DeviceEntry read_device_entry(const JsonValue& object, const Catalogue& catalogue) {
  object.allow_only({"name",
                     "like",
                     "aliases",
                     "memory_GiB",
                     "memory_bandwidth_GBps",
                     "peak_TFLOPs",
                     "link",
                     "per_node",
                     "multiprocessors",
                     "network",
                     "usual_instance",
                     "efficiency",
                     "efficiency_in_clusters",
                     "basis",
                     "host",
                     "collectives",
                     "price_usd_per_hour",
                     "source",
                     "note",
                     "fitted"});
  DeviceEntry out;
  const auto like = object.find("like");
  if (like) out = find_device(catalogue, like->text(), like->where());
  const KnownEfficiency known = [&](const JsonValue& name) -> const Efficiency& {
    return find_device(catalogue, name.text(), name.where()).type.efficiency;
  };
  out.type = read_device_type(object, like ? &out.type : nullptr, known);
  if (object.find("efficiency")) out.in_clusters.reset();
  if (const auto value = object.find("efficiency_in_clusters")) {
    out.in_clusters = read_efficiency(*value, out.type.efficiency, known);
    const std::optional<JsonValue> source = value->find("like");
    out.basis_in_clusters = source ? "copied from " + source->text() : "fitted";
  }
  out.aliases.clear();
  if (const auto aliases = object.find("aliases"))
    for (const JsonValue& alias : aliases->items()) out.aliases.push_back(alias.text());
  if (const auto link = object.find("link")) out.link_kind = link->text_or("kind", out.link_kind);
  if (!like) out.network = kUnknownNetwork;
  if (const auto network = object.find("network")) {
    network->allow_only({"bandwidth_GBps", "bandwidth_Gbps", "latency_us", "per"});
    out.network = read_link(*network, out.network);
    if (const auto per = network->find("per"))
      out.network_per_device = per->choice({"node", "device"}) == 1;
  }
  if (object.find("price_usd_per_hour")) out.usual_instance.clear();
  out.usual_instance = object.text_or("usual_instance", out.usual_instance);
  if (object.find("price_usd_per_hour") && !out.usual_instance.empty())
    throw InputError(object.where(), "give price_usd_per_hour or usual_instance, not both");
  out.source = object.text_or("source", out.source);
  return out;
}

Node usual_node(const DeviceEntry& entry, int count) {
  Node node;
  node.intra = entry.type.intra;
  node.uplink = entry.network;
  if (entry.network_per_device)
    node.uplink.bandwidth =
        gigabytes_per_second(in_gigabytes_per_second(entry.network.bandwidth) * count);
  node.price = usd_per_hour(in_usd_per_hour(entry.type.price) * count);
  return node;
}

Node instance_node(const Instance& instance, const DeviceEntry& device, bool spot) {
  Node node;
  node.intra = device.type.intra;
  node.uplink = instance.network;
  node.price = spot ? instance.spot : instance.price;
  return node;
}

}  // namespace plait
