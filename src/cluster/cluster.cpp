#include "cluster/cluster.h"

#include <algorithm>

namespace plait {

Link slower(const Link& a, const Link& b) {
  return {std::min(a.bandwidth, b.bandwidth), std::max(a.latency, b.latency)};
}

FlopsPerSecond DeviceType::peak_of(DType dtype) const {
  const auto order = [&]() -> std::array<DType, 4> {
    switch (dtype) {
      case DType::fp32:
        return {DType::fp32, DType::fp32, DType::fp32, DType::fp32};
      case DType::tf32:
        return {DType::tf32, DType::fp32, DType::fp32, DType::fp32};
      case DType::fp16:
        return {DType::fp16, DType::bf16, DType::fp32, DType::fp32};
      case DType::bf16:
        return {DType::bf16, DType::fp16, DType::fp32, DType::fp32};
      case DType::fp8:
        return {DType::fp8, DType::bf16, DType::fp16, DType::fp32};
    }
    return {};
  }();
  for (const DType candidate : order)
    if (supports(candidate)) return peak[static_cast<int>(candidate)];
  return peak[static_cast<int>(DType::fp32)];
}

UsdPerSecond Cluster::price() const {
  UsdPerSecond sum;
  for (const Node& node : nodes) sum += node.price;
  return sum;
}

Link link_between_nodes(const Cluster& cluster, int a, int b) {
  const Node& from = cluster.nodes[a];
  const Node& to = cluster.nodes[b];
  Link link = slower(from.uplink, to.uplink);
  for (const ZoneLink& zone : cluster.zone_links) {
    const bool joins =
        (zone.a == from.zone && zone.b == to.zone) || (zone.a == to.zone && zone.b == from.zone);
    if (from.zone != to.zone && joins) link = slower(link, zone.link);
  }
  return link;
}

Link link_between(const Cluster& cluster, DeviceId a, DeviceId b) {
  const int from = cluster.device(a).node;
  const int to = cluster.device(b).node;
  if (from != to) return link_between_nodes(cluster, from, to);
  Link link = cluster.nodes[from].intra;
  const DeviceType& type = cluster.type_of(a);
  // Without a switch two neighbours have one of the links between them.
  if (!type.switched && type.per_node > 2)
    link.bandwidth = link.bandwidth / static_cast<double>(type.per_node - 1);
  return link;
}

}  // namespace plait
