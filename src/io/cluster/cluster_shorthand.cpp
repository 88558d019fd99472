#include "io/cluster/cluster_shorthand.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "cluster/cluster_builder.h"

namespace plait {
namespace {

constexpr std::string_view kOneZone = "default";

// One part between two '+', cut up but not understood.
struct Part {
  std::string where;  // "`cluster` '2xA100:8'"
  std::optional<int> times;
  std::string name;
  std::optional<int> per_node;
  std::optional<BytesPerSecond> network;
  std::string zone;
};

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// A count from 1 to kMaxDevices.
int read_count(std::string_view text, const std::string& what, const std::string& where) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = !text.empty() && end == text.data() + text.size();
  if (!whole || error != std::errc() || value < 1 || value > kMaxDevices)
    throw InputError(where, fmt::format("{} must be a whole number from 1 to {}, is '{}'", what,
                                        kMaxDevices, text.substr(0, 40)));
  return value;
}

BytesPerSecond read_rate(std::string_view text, const std::string& where) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, text.data() + text.size() - end);
  const bool good = error == std::errc() && value > 0 && value < 1e9;
  const auto is = [&](std::initializer_list<std::string_view> units) {
    return good && std::ranges::find(units, unit) != units.end();
  };
  // Networks go by their bits: "400G" and "10GbE" are not bytes.
  if (is({"Gbps", "gbps", "Gb/s", "Gbit/s", "Gbit", "GbE", "Gbe", "gbe", "G", "g"}))
    return BytesPerSecond(value / 8 * 1e9);
  if (is({"Tbps", "tbps", "Tb/s", "Tbit/s"})) return BytesPerSecond(value / 8 * 1e12);
  if (is({"GBps", "GB/s"})) return BytesPerSecond(value * 1e9);
  throw InputError(where, fmt::format("the network after '/' must be like 400Gbps (bits) or 50GBps "
                                      "(bytes), is '{}'",
                                      text.substr(0, 40)));
}

// "100Gbps" behind '@', where the name of a zone belongs.
bool looks_like_rate(std::string_view zone) {
  const bool digit = zone.front() >= '0' && zone.front() <= '9';
  return digit && (zone.ends_with("bps") || zone.ends_with("Bps") || zone.ends_with("/s"));
}

// Takes "<mark>value" off the end of `rest`, from the last mark or the first; nothing when there is
// none.
std::optional<std::string_view> take_off(std::string_view& rest, char mark, bool first = false) {
  const std::size_t at = first ? rest.find(mark) : rest.rfind(mark);
  if (at == rest.npos) return std::nullopt;
  const std::string_view value = trimmed(rest.substr(at + 1));
  rest = trimmed(rest.substr(0, at));
  return value;
}

Part cut(std::string_view text, const std::string& flag) {
  Part part;
  part.where = fmt::format("{} '{}'", flag, text.substr(0, 80));
  std::string_view rest = text;
  if (const auto zone = take_off(rest, '@')) {
    if (zone->empty()) throw InputError(part.where, "a zone name is missing after '@'");
    if (looks_like_rate(*zone))
      throw InputError(part.where, fmt::format("'@' names a zone; the network of a node stands "
                                               "behind '/': {}/{}",
                                               rest, *zone));
    part.zone = *zone;
  }
  if (const auto rate = take_off(rest, '/', true)) part.network = read_rate(*rate, part.where);
  if (const auto count = take_off(rest, ':'))
    part.per_node = read_count(*count, "the number of devices per node", part.where);
  // A leading number followed by 'x' counts nodes; "-1x" is caught here too.
  const std::size_t digits = rest.find_first_not_of("-.0123456789");
  const std::string_view number = rest.substr(0, std::min(digits, rest.size()));
  const std::string_view after = trimmed(rest.substr(number.size()));
  // "64 H100" is "64xH100"; names that begin with digits have no blank behind them.
  const bool blank = rest.size() > number.size() && rest[number.size()] == ' ';
  if (!number.empty() && blank && !after.starts_with('x') && !after.starts_with('X')) {
    part.times = read_count(number, "the number of devices", part.where);
    rest = after;
  }
  for (const std::string_view times : {"x", "X", "*", "\u00d7"})
    if (!number.empty() && after.starts_with(times)) {
      part.times = read_count(number, "the number before 'x'", part.where);
      rest = trimmed(after.substr(times.size()));
      break;
    }
  if (rest.empty()) throw InputError(part.where, "a device type or instance name is missing");
  part.name = rest;
  return part;
}

void add_instances(ClusterBuilder& builder, const Part& part, const Instance& instance,
                   const Catalogue& catalogue) {
  if (part.per_node && *part.per_node != instance.count)
    throw InputError(part.where, fmt::format("instance '{0}' always has {1} devices; leave ':{2}' "
                                             "out, or write {2}x{0} for {2} of them",
                                             instance.name, instance.count, *part.per_node));
  const DeviceEntry& device = find_device(catalogue, instance.device, part.where);
  Node node = instance_node(instance, device);
  if (part.network) node.uplink.bandwidth = *part.network;
  node.zone = builder.zone(part.zone, part.where);
  const int type = builder.type(device.type, part.where);
  for (int i = 0; i < part.times.value_or(1); ++i) {
    node.name = builder.free_name(instance.name);
    builder.node(node, {{type, instance.count}}, part.where);
  }
}

void add_devices(ClusterBuilder& builder, const Part& part, const DeviceEntry& device) {
  const int zone = builder.zone(part.zone, part.where);
  const int type = builder.type(device.type, part.where);
  // "4xH100:2" counts nodes, "12xH100" devices.
  const int size = part.per_node.value_or(device.type.per_node);
  long left = static_cast<long>(part.times.value_or(1)) * part.per_node.value_or(1);
  while (left > 0) {
    const int count = static_cast<int>(std::min<long>(left, size));
    Node node = usual_node(device, count);
    if (part.network) node.uplink.bandwidth = *part.network;
    node.name = builder.free_name(device.type.name);
    node.zone = zone;
    builder.node(node, {{type, count}}, part.where);
    left -= count;
  }
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// A computer that is sold as one node.
struct System {
  const DeviceEntry* device = nullptr;
  int devices = 0;
};

// "DGX-H100" and "HGX B200" have as many devices as is usual, a "GB200-NVL72" as many as it says.
std::optional<System> system_named(const Catalogue& catalogue, std::string_view name) {
  constexpr std::size_t kPrefix = 3;
  const std::string lower = lower_case(name);
  if (lower.starts_with("dgx") || lower.starts_with("hgx")) {
    const DeviceEntry* device = lookup_device(catalogue, name.substr(kPrefix));
    if (device != nullptr) return System{device, device->type.per_node};
  }
  const std::size_t rack = lower.rfind("nvl");
  if (rack == lower.npos || rack == 0 || rack + kPrefix == lower.size()) return std::nullopt;
  const std::string_view count = std::string_view(lower).substr(rack + kPrefix);
  if (count.find_first_not_of("0123456789") != count.npos) return std::nullopt;
  std::string_view type = name.substr(0, rack);
  while (!type.empty() && (type.back() == '-' || type.back() == ' ')) type.remove_suffix(1);
  const DeviceEntry* device = lookup_device(catalogue, type);
  if (device == nullptr) return std::nullopt;
  return System{device, read_count(count, "the number of devices per node", std::string(name))};
}

// "8 H100" of "nodes of 8 H100"; the name itself where it does not begin so.
std::string_view without_nodes(std::string_view name) {
  const auto strip = [&](std::initializer_list<std::string_view> words) {
    for (const std::string_view word : words)
      if (name.size() > word.size() && lower_case(name.substr(0, word.size())) == word &&
          name[word.size()] == ' ') {
        name = trimmed(name.substr(word.size()));
        return true;
      }
    return false;
  };
  if (strip({"nodes", "node", "servers", "server", "machines", "machine"}))
    strip({"of", "with", "x", "times"});
  return name;
}

// "A100x8" as "8xA100", and "2x8xH100", "2x8 H100" and "2 nodes of 8 H100" as "2xH100:8".
void read_other_orders(Part& part, const Catalogue& catalogue) {
  const auto is_known = [&](std::string_view name) {
    return lookup_device(catalogue, name) != nullptr || lookup_instance(catalogue, name) != nullptr;
  };
  if (is_known(part.name)) return;
  const auto digits = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  };
  // The first number of "4090x8" is a name.
  if (part.times && digits(part.name) && is_known(std::to_string(*part.times))) {
    const int times = read_count(part.name, "the number behind 'x'", part.where);
    part.name = std::to_string(*std::exchange(part.times, times));
    return;
  }
  if (part.times && !part.per_node) {
    const std::string_view counted = without_nodes(part.name);
    const std::size_t blank = std::min(counted.find(' '), counted.size());
    if (digits(counted.substr(0, blank)) && is_known(trimmed(counted.substr(blank)))) {
      part.per_node =
          read_count(counted.substr(0, blank), "the number of devices per node", part.where);
      part.name = std::string(trimmed(counted.substr(blank)));
      return;
    }
    part.name = std::string(counted);
  }
  const std::string lower = lower_case(part.name);
  const std::size_t first = lower.find('x');
  const std::size_t last = lower.rfind('x');
  if (last == lower.npos) return;
  const std::string_view name = part.name;
  const std::string_view behind = trimmed(name.substr(last + 1));
  const std::string_view before = trimmed(name.substr(0, first));
  if (!part.times && digits(behind) && is_known(trimmed(name.substr(0, last)))) {
    part.times = read_count(behind, "the number behind 'x'", part.where);
    part.name = std::string(trimmed(name.substr(0, last)));
  } else if (part.times && !part.per_node && digits(before) &&
             is_known(trimmed(name.substr(first + 1)))) {
    part.per_node = read_count(before, "the number of devices per node", part.where);
    part.name = std::string(trimmed(name.substr(first + 1)));
  }
}

// Devices that people train on and that the catalogue does not have, by how their names begin.
bool is_other_device(const std::string& name) {
  constexpr std::string_view kOthers[] = {"tpu", "trn", "trainium", "inf1", "inf2", "gaudi",
                                          "hpu", "ipu", "ascend",   "cpu",  "apple"};
  const std::string lower = lower_case(name);
  const bool is_apple = lower.size() > 1 && lower[0] == 'm' && lower[1] >= '1' && lower[1] <= '9';
  // Slices of TPUs: v5e-16, v4-32, v5p, v6e-8.
  const bool is_tpu =
      lower.size() > 1 && lower[0] == 'v' && lower[1] >= '2' && lower[1] <= '9' &&
      (lower.size() == 2 || std::string_view("ep-l").find(lower[2]) != std::string_view::npos);
  return is_apple || is_tpu || std::ranges::any_of(kOthers, [&](std::string_view other) {
           return lower.starts_with(other);
         });
}

// "8xRTX4090" where four are usual in a node: a server of eight may be meant; and "H100:64", where
// servers have eight.
std::string assumed_nodes(const Part& part, const Catalogue& catalogue) {
  constexpr int kLargestUsual = 8;
  constexpr int kLargestServer = 16;
  const DeviceEntry* device = lookup_device(catalogue, part.name);
  const int count = part.times.value_or(1);
  if (device == nullptr) return "";
  const int size = device->type.per_node;
  if (const int one = part.per_node.value_or(0); one > std::max(size, kLargestServer))
    return fmt::format(
        "{0}:{1} is one node of {1}, joined as {2} are in a server; {1}x{0} is {3} nodes of {2}",
        device->type.name, one, size, (one + size - 1) / size);
  if (part.per_node || count > kLargestUsual) return "";
  if (count <= size) return "";
  const Node node = usual_node(*device, size);
  return fmt::format(
      "{0}x{1} is read as {2} nodes of {3}, joined by {4:.4g} Gbit/s; {1}:{0} is one node", count,
      device->type.name, (count + size - 1) / size, size,
      (part.network ? *part.network : node.uplink.bandwidth).value * 8e-9);
}

void add(ClusterBuilder& builder, Part part, const Catalogue& catalogue) {
  if (const auto system = system_named(catalogue, part.name)) {
    part.per_node = part.per_node.value_or(system->devices);
    return add_devices(builder, part, *system->device);
  }
  if (const DeviceEntry* device = lookup_device(catalogue, part.name))
    return add_devices(builder, part, *device);
  if (const Instance* instance = lookup_instance(catalogue, part.name))
    return add_instances(builder, part, *instance, catalogue);
  std::vector<std::string_view> known = device_names(catalogue);
  for (const std::string_view name : instance_names(catalogue)) known.push_back(name);
  if (part.name.find_first_of(",;") != part.name.npos)
    throw InputError(part.where, "kinds of node are joined by '+', not by ',' or ';'");
  if (is_other_device(part.name))
    throw InputError(part.where,
                     fmt::format("'{}' is not predicted: the types that are known are GPUs "
                                 "(`plait devices`); a `catalogue` file describes others, and "
                                 "plait profile measures the machine that it runs on",
                                 part.name.substr(0, 80)));
  throw InputError(part.where,
                   fmt::format("'{}' is not a file, device type or instance{}; `plait devices` and "
                               "`plait instances` list the names, a `catalogue` adds types of your "
                               "own, and '4xA100-80GB:8' is 4 nodes of 8",
                               part.name.substr(0, 80), suggestion(part.name, known)));
}

// Nodes of two clouds are not in one network.
void refuse_two_clouds(const std::vector<Part>& parts, const Catalogue& catalogue) {
  const Instance* first = nullptr;
  for (const Part& part : parts) {
    if (lookup_device(catalogue, part.name) != nullptr) continue;
    const Instance* instance = lookup_instance(catalogue, part.name);
    if (instance == nullptr) continue;
    if (first == nullptr) first = instance;
    if (instance->provider == first->provider) continue;
    throw InputError(part.where,
                     fmt::format("'{}' is of {} and '{}' of {}, which are not in one network: give "
                                 "each a zone ({}@a + {}@b)",
                                 instance->name, instance->provider, first->name, first->provider,
                                 first->name, instance->name));
  }
}

}  // namespace

LoadedCluster read_cluster_shorthand(const std::string& text, const Catalogue& catalogue,
                                     const std::string& flag) {
  if (text.size() > 10'000) throw InputError(flag, "is longer than 10,000 characters");
  if (!is_utf8(text)) throw InputError(flag, "has bytes that are not UTF-8");
  std::vector<Part> parts;
  bool zoned = false;
  std::string_view rest = text;
  for (bool more = true; more;) {
    const std::size_t plus = rest.find('+');
    more = plus != rest.npos;
    const std::string_view word = trimmed(rest.substr(0, plus));
    if (word.empty())
      throw InputError(fmt::format("{} '{}'", flag, text.substr(0, 80)),
                       "a part between '+' is empty");
    parts.push_back(cut(word, flag));
    zoned = zoned || !parts.back().zone.empty();
    if (more) rest = rest.substr(plus + 1);
  }
  for (Part& part : parts) read_other_orders(part, catalogue);
  ClusterBuilder builder(text);
  if (!zoned) refuse_two_clouds(parts, catalogue);
  for (Part& part : parts) {
    if (part.zone.empty() && zoned)
      throw InputError(part.where, "names no zone but another part does; add '@zone' to it");
    if (part.zone.empty()) part.zone = kOneZone;
    add(builder, part, catalogue);
  }
  LoadedCluster out;
  for (const Part& part : parts)
    if (std::string note = assumed_nodes(part, catalogue); !note.empty())
      out.warnings.push_back(std::move(note));
  for (const auto& [a, b] : builder.join_zones(kUsualZoneLink))
    out.warnings.push_back(assumed_zone_link(a, b));
  out.cluster = std::move(builder).finish(flag);
  return out;
}

}  // namespace plait
