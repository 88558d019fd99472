#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "base/error.h"
#include "io/cluster/cluster_shorthand.h"
#include "validation/run_parts.h"

namespace plait {
namespace {

constexpr int kMostCounted = 200'000;

// "3x p3.8xlarge", "V100 (p3.8xlarge x3)", "V100x12", "12 V100", "2 nodes of 8 V100": what and how
// many.
struct Counted {
  std::string name;
  std::optional<int> count;
  std::optional<int> per_node{};
};

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// "2 nodes of 8x V100", "4 machines with 8 A100".
std::optional<Counted> counted_nodes(const std::string& part) {
  static const std::regex nodes(
      R"(^(\d{1,5})\s*(?:[xX*]|×)?\s*(?:nodes?|machines?|servers?|hosts?)\s+(?:of|with)\s+(\d{1,3})\s*(?:[xX*]|×)?\s*([^\d\s].*)$)",
      std::regex::icase);
  std::smatch match;
  if (!std::regex_match(part, match, nodes)) return std::nullopt;
  const int each = std::stoi(match[2]);
  if (each == 0) return std::nullopt;
  return Counted{match[3], std::min(kMostCounted + 1, std::stoi(match[1]) * each), each};
}

Counted counted(const std::string& part, const Catalogue& catalogue) {
  if (lookup_device(catalogue, part) != nullptr) return {part, std::nullopt};  // "RTX 3090"
  if (const auto nodes = counted_nodes(part)) return *nodes;
  static const std::regex before(
      R"(^(\d{1,6})\s*(?:[xX*]|×)?\s+(\S.*)$|^(\d{1,6})(?:[xX*]|×)(\S.*)$)");
  static const std::regex after(R"(^(.*\S)\s*(?:\b[xX]|[*:]|×|[xX])\s*(\d{1,6})$)");
  std::smatch match;
  if (std::regex_match(part, match, before))
    return match[1].matched ? Counted{match[2], std::stoi(match[1])}
                            : Counted{match[4], std::stoi(match[3])};
  if (std::regex_match(part, match, after)) return {trimmed(match[1]), std::stoi(match[2])};
  return {part, std::nullopt};
}

// The parts between "+", ";", ",", "&" and "and"; what stands in parentheses stands for its part
// where it names machines, and is a remark elsewhere.
std::vector<Counted> listed_devices(const std::string& text, const Catalogue& catalogue) {
  static const std::regex machines(R"(\(([^()]*[a-z0-9-]\.[a-z0-9]+[^()]*)\))");
  static const std::regex remark(R"(\([^()]*\))");
  static const std::regex sign(R"(\s*(?:[+;,&]|\band\b)\s*)");
  std::vector<Counted> out;
  // Signs inside parentheses part nothing.
  std::string open = text;
  int depth = 0;
  for (char& c : open) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (depth > 0 && (c == '+' || c == ';' || c == ',' || c == '&')) c = ' ';
  }
  for (std::sregex_token_iterator it(open.begin(), open.end(), sign, -1), end; it != end; ++it) {
    std::string part = trimmed(it->str());
    std::smatch match;
    if (std::regex_search(part, match, machines))
      part = trimmed(match[1]);
    else
      part = trimmed(std::regex_replace(part, remark, ""));
    if (!part.empty()) out.push_back(counted(part, catalogue));
  }
  return out;
}

// "A100/V100": devices without their numbers.
bool names_several(const std::string& text, const Catalogue& catalogue) {
  const std::size_t slash = text.find('/');
  if (slash == text.npos) return false;
  const DeviceEntry* a = lookup_device(catalogue, trimmed(text.substr(0, slash)));
  const DeviceEntry* b = lookup_device(catalogue, trimmed(text.substr(slash + 1)));
  return a != nullptr && b != nullptr && a != b;
}

// A part of a mixed cluster as the shorthand of clusters has it, and its devices.
std::pair<std::string, int> shorthand_of(const Counted& part, const RunRow& row,
                                         const std::string& network, const Catalogue& catalogue) {
  if (!part.count)
    throw RowRefused(fmt::format("runs on several device types, and how many of '{}' is not stated",
                                 part.name.substr(0, 40)));
  if (const Instance* instance = lookup_instance(catalogue, part.name))
    return {fmt::format("{}x{}", *part.count, instance->name), *part.count * instance->count};
  const DeviceEntry* device = lookup_device(catalogue, part.name);
  if (device == nullptr) throw RowRefused(part.name + " is not in the catalogue");
  const int per_node = part.per_node.value_or(row.gpus_per_node.value_or(0));
  if (per_node > 0 && *part.count % per_node == 0)
    return {fmt::format("{}x{}:{}{}", *part.count / per_node, device->type.name, per_node, network),
            *part.count};
  return {fmt::format("{}x{}{}", *part.count, device->type.name, network), *part.count};
}

// Machines by their name; one that is none of a provider's may be called by its devices: "DGX
// B200".
void read_machines(RunRow& row, const Catalogue& catalogue) {
  const Counted machine = counted(row.instance, catalogue);
  const Instance* instance = lookup_instance(catalogue, machine.name);
  if (instance == nullptr && row.gpu.empty() && device_called(machine.name, catalogue) != nullptr) {
    row.gpu = row.instance;
    row.instance.clear();
    return;
  }
  if (instance == nullptr)
    throw RowRefused(fmt::format("the instance '{}' is not in the catalogue", machine.name));
  row.instance = instance->name;
  if (row.gpu.empty()) row.gpu = instance->device;
  if (!row.gpus_per_node) row.gpus_per_node = instance->count;
  if (!row.nodes) row.nodes = machine.count;
}

}  // namespace

// Tables write "NVIDIA A100 80GB SXM4", "AMD Instinct MI300X", "A100-80GB (8 per node)".
const DeviceEntry* device_called(const std::string& text, const Catalogue& catalogue) {
  if (const DeviceEntry* entry = lookup_device(catalogue, text)) return entry;
  static const std::regex noise(
      R"(\s*\([^)]*\)|\b(?:NVIDIA|AMD|Instinct|Tesla|GeForce|[DH]GX|NVLink|OAM|GPUs?|nodes?)\b)",
      std::regex::icase);
  static const std::regex blanks(R"(^[\s-]+|[\s-]+$)");
  std::string plain = std::regex_replace(text, noise, "");
  plain = std::regex_replace(plain, blanks, "");
  return plain.empty() ? nullptr : lookup_device(catalogue, plain);
}

void count_devices(RunRow& row, const Catalogue& catalogue, Assumptions& assumptions) {
  // "A100 (40G)" is A100-40GB.
  static const std::regex memory(R"([\s-]*\(?\b(\d{2,3})\s?G(?:i?B)?\b\)?)", std::regex::icase);
  row.gpu = std::regex_replace(row.gpu, memory, "-$1GB", std::regex_constants::format_first_only);
  if (!row.instance.empty()) read_machines(row, catalogue);
  if (names_several(row.gpu, catalogue))
    throw RowRefused("runs on several device types, and how many of each is not stated");
  const std::vector<Counted> parts = listed_devices(row.gpu, catalogue);
  const bool all = std::ranges::all_of(parts, [](const Counted& p) { return p.count.has_value(); });
  if (parts.size() > 1 && all) row.heterogeneous = true;
  const auto known = [&](const Counted& part) { return device_called(part.name, catalogue); };
  if (!row.gpus && row.heterogeneous) {
    double sum = 0;
    for (const Counted& part : parts) {
      const Instance* instance = lookup_instance(catalogue, part.name);
      sum += static_cast<double>(part.count.value_or(0)) * (instance ? instance->count : 1);
    }
    if (sum > 0) row.gpus = static_cast<int>(std::min<double>(kMostCounted + 1, sum));
  }
  if (row.gpus || row.heterogeneous) {
    if (row.gpus && row.nodes && !row.gpus_per_node && *row.gpus % *row.nodes == 0)
      row.gpus_per_node = *row.gpus / *row.nodes;
    return;
  }
  if (parts.size() == 1 && parts[0].count && known(parts[0]) != nullptr) {
    row.gpu = parts[0].name;
    if (row.nodes && !parts[0].per_node)
      row.gpus_per_node = parts[0].count;
    else
      row.gpus = parts[0].count;
    if (parts[0].per_node) row.gpus_per_node = parts[0].per_node;
  }
  if (!row.gpus && row.nodes && !row.gpus_per_node && parts.size() == 1)
    if (const DeviceEntry* entry = known(parts[0])) {
      row.gpus_per_node = entry->type.per_node;
      assumptions.push_back(fmt::format("nodes of {} {}", entry->type.per_node, entry->type.name));
    }
  if (!row.gpus && row.nodes && row.gpus_per_node)
    row.gpus = static_cast<int>(
        std::min<double>(kMostCounted + 1, static_cast<double>(*row.nodes) * *row.gpus_per_node));
}

LoadedCluster listed_cluster(const RunRow& row, const std::string& network,
                             const Catalogue& catalogue, Assumptions& assumptions) {
  std::string shorthand;
  int devices = 0;
  for (const Counted& part : listed_devices(row.gpu, catalogue)) {
    const auto [text, count] = shorthand_of(part, row, network, catalogue);
    shorthand += (shorthand.empty() ? "" : "+") + text;
    devices += count;
  }
  if (row.gpus && devices != *row.gpus)
    throw RowRefused(
        fmt::format("{} have {} devices, num_gpus is {}", shorthand, devices, *row.gpus));
  assumptions.push_back("machines in the order in which they are named: " + shorthand);
  try {
    return read_cluster_shorthand(shorthand, catalogue, "gpu");
  } catch (const InputError& error) {
    throw RowRefused(error.what());
  }
}

}  // namespace plait
