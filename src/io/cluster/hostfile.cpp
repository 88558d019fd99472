#include "io/cluster/hostfile.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cluster/cluster_builder.h"
#include "io/cluster/device_json.h"

namespace plait {
namespace {

constexpr int kMostHosts = 100'000;

struct Host {
  std::string where;  // "hostfile:3"
  std::string name;
  int slots = 0;
  bool two_columns = false;
};

std::vector<std::string_view> words_in(std::string_view line) {
  std::vector<std::string_view> out;
  line = line.substr(0, line.find('#'));
  constexpr std::string_view kBlanks = " \t\r\v\f";
  for (std::size_t at = line.find_first_not_of(kBlanks); at != line.npos;) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    out.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kBlanks, end);
  }
  return out;
}

int read_slots(std::string_view text, const std::string& where) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || end != text.data() + text.size() || error != std::errc() || value < 1 ||
      value > kMaxDevices)
    throw InputError(where, fmt::format("the number of devices must be a whole number from 1 to "
                                        "{}, is '{}'",
                                        kMaxDevices, text.substr(0, 40)));
  return value;
}

Host read_host(const std::vector<std::string_view>& words, const std::string& where) {
  Host host{where, std::string(words[0]), 0, false};
  if (!std::ranges::all_of(host.name, [](char c) { return c > ' ' && c < 0x7f; }))
    throw InputError(where, "the host name has characters that no host name has");
  if (words[0].find('=') != words[0].npos)
    throw InputError(where, "starts with a setting; the host name comes first: 'host slots=8'");
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const bool plain = word.find('=') == word.npos;
    const bool slots = plain || word.starts_with("slots=");
    if (slots && host.slots > 0) throw InputError(where, "names the number of devices twice");
    if (slots) {
      host.slots = read_slots(plain ? word : word.substr(6), where);
      host.two_columns = plain;
    } else if (!word.starts_with("max_slots=") && !word.starts_with("max-slots=")) {
      throw InputError(where, fmt::format("'{}' is not understood; a line is 'host slots=8' or "
                                          "'host 8'",
                                          word.substr(0, 40)));
    }
  }
  // MPICH's "host:8"; an address of six has more colons.
  if (const std::size_t colon = host.name.rfind(':');
      host.slots == 0 && colon != host.name.npos && colon == host.name.find(':')) {
    host.slots = read_slots(std::string_view(host.name).substr(colon + 1), where);
    host.name.resize(colon);
    if (host.name.empty()) throw InputError(where, "the host name is missing before ':'");
  }
  if (host.slots == 0)
    throw InputError(where, fmt::format("host '{}' has no number of devices; write '{} slots=8'",
                                        host.name.substr(0, 80), host.name.substr(0, 80)));
  return host;
}

// Slurm's "node[01-03,07]" as the names of four hosts; a name without such a list as it is.
std::vector<std::string> host_names(const Host& host) {
  constexpr std::size_t kLongestHost = 255;
  const std::string& name = host.name;
  const std::size_t open = name.find('[');
  if (open == name.npos || open == 0) return {name};  // "[2001:db8::1]" is an address
  const std::size_t close = name.find(']', open);
  const auto refuse = [&] {
    throw InputError(
        host.where, fmt::format("host '{}' is no list such as node[01-04,07]", name.substr(0, 80)));
  };
  const bool one_list = close != name.npos && name.find('[', open + 1) == name.npos;
  if (!one_list || name.size() > kLongestHost) refuse();
  std::vector<std::string> names;
  std::string_view list = std::string_view(name).substr(open + 1, close - open - 1);
  for (bool more = true; more;) {
    const std::size_t comma = std::min(list.find(','), list.size());
    more = comma < list.size();
    const std::string_view range = list.substr(0, comma);
    const std::string_view from = range.substr(0, range.find('-'));
    const std::string_view to =
        range.find('-') == range.npos ? from : range.substr(from.size() + 1);
    int first = 0;
    int last = 0;
    const auto number = [&](std::string_view text, int& value) {
      const char* end = text.data() + text.size();
      const auto [stop, error] = std::from_chars(text.data(), end, value);
      if (text.empty() || stop != end || error != std::errc() || value < 0) refuse();
    };
    number(from, first);
    number(to, last);
    if (last < first || last - first >= kMostHosts) refuse();
    for (int i = first; i <= last; ++i)
      names.push_back(
          fmt::format("{}{:0{}}{}", name.substr(0, open), i, from.size(), name.substr(close + 1)));
    if (names.size() > kMostHosts) refuse();
    if (more) list = list.substr(comma + 1);
  }
  return names;
}

std::vector<Host> read_hosts(const std::string& path, std::string_view text) {
  std::vector<Host> hosts;
  int line_number = 0;
  while (!text.empty()) {
    const std::size_t newline = std::min(text.find('\n'), text.size());
    const std::vector<std::string_view> words = words_in(text.substr(0, newline));
    text.remove_prefix(std::min(newline + 1, text.size()));
    ++line_number;
    if (words.empty()) continue;
    Host host = read_host(words, fmt::format("{}:{}", path, line_number));
    for (std::string& name : host_names(host)) {
      host.name = std::move(name);
      hosts.push_back(host);
    }
    if (hosts.size() > kMostHosts)
      throw InputError(path, fmt::format("names more than {} hosts", kMostHosts));
  }
  if (hosts.empty()) throw InputError(path, "names no host");
  return hosts;
}

// What a clusterfile says of one host.
struct HostKind {
  DeviceType type;
  Node node;  // of one device; the price is per device
};

// Metis' clusterfile: host -> {instance_type, inter_bandwidth, intra_bandwidth, memory}.
class ClusterfileReader {
 public:
  ClusterfileReader(const std::string& path, const Catalogue& catalogue)
      : path_(path), catalogue_(catalogue) {}

  std::map<std::string, HostKind> read(std::vector<std::string>& warnings) {
    const JsonValue root = read_json_file(path_);
    if (root.is_object() && root.find("plait_cluster"))
      throw InputError(path_, "is a native cluster file; give it as `cluster`, without a hostfile");
    std::map<std::string, HostKind> kinds;
    std::map<std::string, Bytes> memory_of;  // by type name
    for (const auto& [host, value] : root.members()) {
      HostKind kind = read_kind(value);
      const Bytes memory = kind.type.memory;
      if (memory_of.emplace(kind.type.name, memory).first->second != memory)
        kind.type.name += fmt::format("-{}GiB", memory.value / 0x1p30);
      kinds.emplace(host, std::move(kind));
    }
    if (!in_bytes_.empty())
      warnings.push_back(fmt::format("{}; so are all other bandwidths over 1e6", in_bytes_));
    return kinds;
  }

 private:
  // Bandwidths are GB/s in Metis' code, but its README shows bytes/s; no link carries a petabyte a
  // second, so that a value over a million can only be bytes/s.
  BytesPerSecond read_bandwidth(const JsonValue& value) {
    const double number = value.positive();
    if (number <= 1e6) return gigabytes_per_second(number);
    if (number > 1e18) throw InputError(value.where(), "is more than any link in bytes/s");
    if (in_bytes_.empty())
      in_bytes_ = fmt::format("{}: {} is taken as bytes/s, that is {} GB/s", value.where(), number,
                              number / 1e9);
    return gigabytes_per_second(number / 1e9);
  }

  HostKind read_kind(const JsonValue& object) {
    object.allow_only({"instance_type", "inter_bandwidth", "intra_bandwidth", "memory"});
    const JsonValue name = object.at("instance_type");
    const Instance* instance = lookup_instance(catalogue_, name.text());
    const DeviceEntry* entry = &find_device(
        catalogue_, instance != nullptr ? instance->device : name.text(), name.where());
    const auto memory = object.find("memory");
    if (memory && instance == nullptr) entry = &variant(*entry, memory->positive());
    HostKind kind{entry->type, usual_node(*entry, 1)};
    if (memory) set_memory(*memory, kind.type);
    kind.node.uplink.bandwidth = read_bandwidth(object.at("inter_bandwidth"));
    if (const auto intra = object.find("intra_bandwidth"))
      kind.node.intra.bandwidth = read_bandwidth(*intra);
    return kind;
  }

  // Metis multiplies by 1024 to get MiB: its GB is a GiB.
  static void set_memory(const JsonValue& value, DeviceType& type) {
    const double gib = value.positive();
    if (gib > 1e6) throw InputError(value.where(), fmt::format("must be in GB, is {}", gib));
    const Bytes bytes(std::floor(gib * 0x1p30));
    if (std::abs(bytes / type.memory - 1) > 0.15) type.name += fmt::format("-{}GiB", gib);
    type.memory = bytes;
  }

  // "A100" with 40 GB is the A100-40GB: of the types whose name starts so, with the same kind of
  // link, the one whose memory is nearest.
  const DeviceEntry& variant(const DeviceEntry& named, double memory_gib) const {
    const std::string family = named.type.name.substr(0, named.type.name.find('-')) + "-";
    const auto distance = [&](const DeviceEntry& entry) {
      return std::abs(entry.type.memory.value / 0x1p30 - memory_gib);
    };
    const DeviceEntry* best = &named;
    for (const DeviceEntry& entry : catalogue_.devices)
      if (entry.type.name.starts_with(family) && entry.link_kind == named.link_kind &&
          distance(entry) < distance(*best))
        best = &entry;
    return *best;
  }

  std::string path_;
  const Catalogue& catalogue_;
  std::string in_bytes_;  // the first bandwidth that was in bytes/s
};

class HostfileReader {
 public:
  HostfileReader(const std::string& path, const ClusterOptions& options)
      : path_(path), options_(options), builder_(path.substr(path.rfind('/') + 1)) {}

  LoadedCluster read(std::string_view text) {
    const bool described = !options_.clusterfile.empty();
    if (described && !options_.device.empty())
      throw InputError(path_, "give `clusterfile` or `device`, not both");
    if (!described && options_.device.empty())
      throw InputError(path_,
                       "a hostfile does not say what the devices are; add `device` A100-80GB (any "
                       "name of `plait devices`), or `clusterfile`");
    const std::vector<Host> hosts = read_hosts(path_, text);
    if (described)
      kinds_ = ClusterfileReader(options_.clusterfile, options_.catalogue).read(out_.warnings);
    else
      alike_ = &find_device(options_.catalogue, options_.device, "`device`");
    builder_.zone("default", path_);
    for (const Host& host : hosts) add(host, described);
    out_.cluster = std::move(builder_).finish(path_);
    return std::move(out_);
  }

 private:
  void add(const Host& host, bool described) {
    Node node;
    DeviceType type;
    if (described) {
      const auto it = kinds_.find(host.name);
      if (it == kinds_.end())
        throw InputError(host.where, fmt::format("host '{}' is not in {}", host.name.substr(0, 80),
                                                 options_.clusterfile));
      type = it->second.type;
      node = it->second.node;
      node.price = usd_per_hour(in_usd_per_hour(type.price) * host.slots);
    } else {
      type = alike_->type;
      node = usual_node(*alike_, host.slots);
    }
    const int times = ++seen_[host.name];
    if (times > 1 && !host.two_columns && !described)
      throw InputError(host.where, fmt::format("host '{}' appears twice", host.name));
    node.name = times == 1 ? host.name : fmt::format("{}#{}", host.name, times);
    builder_.node(node, {{builder_.type(type, host.where), host.slots}}, host.where);
  }

  std::string path_;
  const ClusterOptions& options_;
  ClusterBuilder builder_;
  std::map<std::string, HostKind> kinds_;  // by host, from the clusterfile
  const DeviceEntry* alike_ = nullptr;     // without one
  std::map<std::string, int> seen_;
  LoadedCluster out_;
};

}  // namespace

LoadedCluster read_hostfile(const std::string& path, std::string_view text,
                            const ClusterOptions& options) {
  return HostfileReader(path, options).read(text);
}

}  // namespace plait
