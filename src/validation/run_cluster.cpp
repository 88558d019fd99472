#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <regex>

#include "cluster/cluster_builder.h"
#include "io/cluster/device_json.h"
#include "validation/run_parts.h"

namespace plait {
namespace {

// Tables round memory and mix GB with GiB, which alone is 7 %; neighbours of the catalogue (40 and
// 48, 80 and 94) are further apart.
constexpr double kMemoryTolerance = 0.15;
// Devices that one NVLink domain has at least when it is a rack: NVL36 and NVL72 are the smallest
// racks, boards of 8 and 16 are nodes.
constexpr int kRack = 32;

std::string without_remarks(const std::string& text) {
  static const std::regex remark(R"(\s*\([^)]*\)|\s+\d+\s*W\b|^\d+\s*[xX]\s*|\s+[xX]\s*\d+$)");
  static const std::regex system(R"(^(?:NVIDIA\s+)?[DH]GX[- ]?)");
  return std::regex_replace(std::regex_replace(text, remark, ""), system, "");
}

// Tables name a device in many ways: as the catalogue does, with a remark ("T4 (g4dn.12xlarge)"),
// by its class and its memory ("A100", 40), with its power ("H100 700W"), counted ("8x H100").
const DeviceEntry& device_of(const RunRow& row, const Catalogue& catalogue) {
  std::vector<std::string> names{row.gpu, without_remarks(row.gpu)};
  if (row.gpu_memory_gb)
    for (const std::string& name : {row.gpu_class, without_remarks(row.gpu)})
      names.push_back(fmt::format("{}-{:.0f}GB", name, *row.gpu_memory_gb));
  static const std::regex power(R"((\d{2,4})\s*W\b)");
  std::smatch watts;
  if (row.gpu_memory_gb && std::regex_search(row.gpu, watts, power))
    names.insert(names.begin(),
                 fmt::format("{}-{:.0f}GB-{}W", row.gpu_class, *row.gpu_memory_gb, watts[1].str()));
  names.push_back(row.gpu_class);
  static const std::regex vague("-class$");
  names.push_back(std::regex_replace(row.gpu_class, vague, ""));
  // An alias such as "A100" must not hide that the row states the memory.
  std::ranges::stable_sort(names, [&](const std::string& a, const std::string& b) {
    const auto fits = [&](const std::string& name) {
      const DeviceEntry* entry = lookup_device(catalogue, name);
      if (!entry || !row.gpu_memory_gb) return false;
      const double gigabytes = entry->type.memory.value / 0x1p30;
      return std::abs(gigabytes / *row.gpu_memory_gb - 1) < kMemoryTolerance;
    };
    return fits(a) && !fits(b);
  });
  for (const std::string& name : names)
    if (const DeviceEntry* entry = name.empty() ? nullptr : lookup_device(catalogue, name))
      return *entry;
  if (const DeviceEntry* entry = device_called(row.gpu, catalogue)) return *entry;
  throw RowRefused(fmt::format("the device '{}' is not in the catalogue",
                               row.gpu.empty() ? row.gpu_class : row.gpu));
}

// What the column `interconnect` says of the network of one node and of the links inside it.
struct StatedLinks {
  std::optional<BytesPerSecond> uplink;  // of a node
  std::optional<BytesPerSecond> intra;   // of a device
};

StatedLinks stated_links(const std::string& text, int per_node) {
  constexpr double kGigabit = 1e9 / 8;
  StatedLinks links;
  std::smatch match;
  static const std::regex within(R"((\d{1,7}(?:\.\d{1,7})?)\s*G(?:bps|b/s)\s*intra)");
  static const std::regex several(R"((\d{1,4})\s*x\s*(\d{1,7})\s*Gb)");
  static const std::regex single(R"((\d{1,7}(?:\.\d{1,7})?)\s*Gb(?:ps|/s|it/s))");
  static const std::regex assumed(R"(Gb(?:ps|/s|it/s)\s*intra as modelled)");
  static const std::regex each(R"(per (?:GPU|device))", std::regex::icase);
  if (std::regex_search(text, match, within) && !std::regex_search(text, assumed))
    links.intra = BytesPerSecond(std::stod(match[1]) * kGigabit);
  if (std::regex_search(text, match, several))
    links.uplink = BytesPerSecond(std::stod(match[1]) * std::stod(match[2]) * kGigabit);
  else if (std::regex_search(text, match, single))
    links.uplink = BytesPerSecond(std::stod(match[1]) * kGigabit *
                                  (std::regex_search(text, each) ? per_node : 1));
  else if (mentions(text, "Jean Zay"))
    links.uplink = BytesPerSecond(4 * 100 * kGigabit);  // four Omni-Path links of 100 Gbit/s
  return links;
}

// The largest part of the devices that fits a node and divides them: 256 in racks of 72 are four
// parts of 64.
int even_nodes(int devices, int per_node) {
  if (devices <= per_node) return devices;
  for (int n = per_node; n > per_node / 2; --n)
    if (devices % n == 0) return n;
  return per_node;
}

// The machine that the row names, as itself or in what it says of the network; nullptr when it
// names none, or one with other devices.
const Instance* rented_machine(const RunRow& row, const DeviceEntry& device,
                               const Catalogue& catalogue) {
  static const std::regex word(R"([A-Za-z0-9_.-]*[A-Za-z0-9])");
  const std::string text = row.instance + " " + row.interconnect + " " + row.gpu;
  for (std::sregex_iterator it(text.begin(), text.end(), word), end; it != end; ++it) {
    const Instance* found = lookup_instance(catalogue, it->str());
    if (found != nullptr && lookup_device(catalogue, found->device) == &device) return found;
  }
  return nullptr;
}

}  // namespace

Cluster cluster_of(const RunRow& row, const Catalogue& catalogue, Assumptions& assumptions) {
  if (row.heterogeneous) {
    const StatedLinks links = stated_links(row.interconnect, row.gpus_per_node.value_or(1));
    const std::string network =
        links.uplink ? fmt::format("/{:g}GBps", in_gigabytes_per_second(*links.uplink)) : "";
    return listed_cluster(row, network, catalogue, assumptions).cluster;
  }
  const DeviceEntry& known = device_of(row, catalogue);
  DeviceEntry entry = known;
  if (entry.in_clusters && *row.gpus > 1) entry.type.efficiency = *entry.in_clusters;
  if (row.gpu_memory_gb) {
    const Bytes stated(*row.gpu_memory_gb * 0x1p30);
    if (std::abs(stated / entry.type.memory - 1) > kMemoryTolerance) {
      entry.type.memory = stated;
      assumptions.push_back(fmt::format("{} with {} GiB", entry.type.name, *row.gpu_memory_gb));
    }
  }
  // A node is what NVLink joins; tables give the trays of a rack as nodes.
  const bool tray =
      row.gpus_per_node.value_or(0) < entry.type.per_node && entry.type.per_node >= kRack;
  const int per_node = row.gpus_per_node && !tray ? std::min(*row.gpus_per_node, *row.gpus)
                                                  : even_nodes(*row.gpus, entry.type.per_node);
  const StatedLinks links = stated_links(row.interconnect, per_node);
  const Instance* machine = rented_machine(row, known, catalogue);
  ClusterBuilder builder("published run");
  const int type = builder.type(entry.type, row.id);
  for (int left = *row.gpus; left > 0; left -= per_node) {
    const int count = std::min(left, per_node);
    Node node = usual_node(entry, count);
    if (machine != nullptr && count == machine->count) node.uplink = machine->network;
    if (links.uplink) node.uplink.bandwidth = *links.uplink;
    if (links.intra) node.intra.bandwidth = *links.intra;
    node.name = builder.free_name("node");
    node.zone = builder.zone("zone", row.id);
    builder.node(node, {{type, count}}, row.id);
  }
  return std::move(builder).finish(row.id);
}

}  // namespace plait
