#include "report/summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/printable.h"
#include "plan/names.h"
#include "report/quantities.h"

namespace plait {
namespace {

// "8 A100-80GB", or "4 T4 + 4 L4" where a node is mixed; types in the cluster's order.
std::string counted_types(const Cluster& cluster, const std::map<int, int>& count_by_type) {
  std::vector<std::string> parts;
  for (const auto& [type, count] : count_by_type)
    parts.push_back(fmt::format("{} {}", count, printable(cluster.device_types[type].name)));
  return fmt::format("{}", fmt::join(parts, " + "));
}

// Who runs the plans, and whose speed they have where that is another's.
std::string program_in_words(const Framework& framework, std::string_view target) {
  if (target.empty()) target = framework.target;
  const std::string speed = fmt::format("at the speed of {}", framework.name);
  if (target == "any") return speed + ", whichever program runs it";
  if (target == framework.name) return fmt::format("as {} runs it", target);
  return fmt::format("as {} runs it, {}", target, speed);
}

}  // namespace

std::string summary_of(const Model& model) {
  const bool in_ops = !std::ranges::all_of(model.kinds, &LayerKind::starts_layer);
  std::string out = fmt::format(
      "{}: {} parameters, {}", printable(model.name), abbreviated(model.parameters()),
      in_ops ? counted(model.unit_count(), "op") : counted(layer_count(model), "layer"));
  if (model.sequence_length > 1)
    out += fmt::format(", sequences of {} tokens", grouped(model.sequence_length));
  return out;
}

std::string summary_of(const Cluster& cluster) {
  std::vector<std::map<int, int>> nodes(cluster.nodes.size());
  for (const Device& device : cluster.devices) ++nodes[device.node][device.type];
  // Equal nodes are counted, in the order of their first.
  std::vector<std::pair<std::string, int>> groups;
  for (const auto& node : nodes) {
    const std::string text = counted_types(cluster, node);
    const auto same = std::ranges::find(groups, text, &std::pair<std::string, int>::first);
    if (same == groups.end())
      groups.emplace_back(text, 1);
    else
      ++same->second;
  }
  std::vector<std::string> parts;
  constexpr std::size_t kMost = 6;
  for (std::size_t g = 0; g < std::min(groups.size(), kMost); ++g)
    parts.push_back(fmt::format("{} x {}", groups[g].second, groups[g].first));
  if (groups.size() > kMost)
    parts.push_back(fmt::format("{} more kinds of node", groups.size() - kMost));
  const bool is_gpu = std::ranges::none_of(cluster.device_types, [](const DeviceType& type) {
    return type.name.find("CPU") != type.name.npos;
  });
  std::string out = fmt::format("{}: {}", fmt::join(parts, " + "),
                                counted(cluster.device_count(), is_gpu ? "GPU" : "device"));
  if (cluster.zones.size() > 1) out += fmt::format(" in {} zones", cluster.zones.size());
  const bool priced = std::ranges::all_of(
      cluster.nodes, [](const Node& node) { return node.price > UsdPerSecond(0); });
  if (priced)
    out += fmt::format(", {} an hour", in_words(cluster.price() * Seconds(kSecondsPerHour)));
  return out;
}

std::string summary_of(const Problem& problem, std::string_view target) {
  const Job& job = problem.job;
  std::string out = "global batch " + grouped(job.global_batch);
  if (problem.model.sequence_length > 1)
    out += fmt::format(" ({} tokens)", abbreviated(static_cast<double>(job.global_batch) *
                                                   problem.model.sequence_length));
  if (job.adapters)
    out += job.adapter_rank > 0
               ? fmt::format(", {} of rank {}", job.four_bit_weights ? "QLoRA" : "LoRA",
                             job.adapter_rank)
               : ", adapters";
  const auto frozen = std::ranges::count_if(problem.model.units, [&](int kind) {
    return problem.model.kinds[kind].frozen && is_layer(problem.model.kinds[kind]);
  });
  if (frozen > 0) out += fmt::format(", {} frozen", counted(static_cast<double>(frozen), "layer"));
  if (job.zero_group > 0)
    out += fmt::format(", states cut over {} at a time", counted(job.zero_group, "device"));
  if (job.memory_limit > Bytes(0))
    out += fmt::format(", at most {} of each device", in_words(job.memory_limit));
  return out + fmt::format(", {}, {}, {} attention, {}", name_of(job.precision),
                           name_of(job.optimizer), name_of(job.attention),
                           program_in_words(job.framework, target));
}

std::string how_sure(const Problem& problem) {
  std::vector<std::string> parts;
  for (const DeviceType& type : problem.cluster.device_types) {
    const std::string name = printable(type.name);
    if (type.basis == "measured")
      parts.push_back(name + " measured");
    else if (type.basis == "fitted")
      parts.push_back(name + " fitted to published runs");
    else if (type.basis.empty())
      parts.push_back(name + " as its file says");
    else
      parts.push_back(name + " " + printable(type.basis) + ", not fitted itself");
  }
  constexpr std::size_t kMost = 4;
  if (parts.size() > kMost) {
    const std::size_t more = parts.size() - kMost;
    parts.resize(kMost);
    parts.push_back(fmt::format("{} more types", more));
  }
  const bool profiled = !problem.profile.compute.empty();
  return fmt::format("speeds: {}{}", fmt::join(parts, "; "),
                     profiled ? "; what the profile has is measured" : "");
}

std::string types_of(const Cluster& cluster, const std::vector<DeviceId>& devices) {
  std::map<int, int> count_by_type;
  for (const DeviceId id : devices) ++count_by_type[cluster.device(id).type];
  return counted_types(cluster, count_by_type);
}

}  // namespace plait
