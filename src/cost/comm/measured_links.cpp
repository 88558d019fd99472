#include "cost/comm/measured_links.h"

#include <algorithm>
#include <map>
#include <set>

#include "cost/comm/series.h"

namespace plait {

std::optional<Seconds> MeasuredLinks::measured(const char* collective, int nodes, int per_node,
                                               Bytes size) const {
  if (profile_.collectives.empty()) return std::nullopt;
  const auto curve = profile_.collectives.find({.collective = collective,
                                                .device_type = device_type_,
                                                .nodes = nodes,
                                                .devices_per_node = per_node});
  if (curve == profile_.collectives.end() || curve->second.empty()) return std::nullopt;
  std::vector<Point> points;
  for (const CollectivePoint& point : curve->second)
    points.push_back({.x = point.size.value, .value = point.time.value});
  return Seconds(Series(std::move(points)).at(size.value));
}

std::optional<Seconds> MeasuredLinks::measured(const char* collective, const Group& group,
                                               Bytes size) const {
  if (group.members != group.nodes * group.per_node) return std::nullopt;
  return measured(collective, group.nodes, group.per_node, size);
}

Seconds MeasuredLinks::all_reduce(const Group& group, Bytes size) const {
  if (group.members == 1) return {};
  if (const auto time = measured("all_reduce", group, size)) return *time;
  return plait::all_reduce(group, size);
}

Seconds MeasuredLinks::all_gather(const Group& group, Bytes size) const {
  if (group.members == 1) return {};
  if (const auto time = measured("all_gather", group, size)) return *time;
  return plait::all_gather(group, size);
}

Seconds MeasuredLinks::reduce_scatter(const Group& group, Bytes size) const {
  if (group.members == 1) return {};
  if (const auto time = measured("reduce_scatter", group, size)) return *time;
  return plait::reduce_scatter(group, size);
}

// Measured sizes are those of one member's part.
Seconds MeasuredLinks::all_to_all(const Group& group, Bytes whole) const {
  if (group.members == 1) return {};
  const Bytes part = whole / group.members;
  if (const auto time = measured("all_to_all", group, part)) return *time;
  return plait::all_to_all(group, part, {});
}

std::optional<Seconds> MeasuredLinks::send(bool same_node, Bytes size) const {
  return measured("send", same_node ? 1 : 2, 1, size);
}

Seconds measured_extras(const Profile& profile, const Cluster& cluster, const Plan& plan) {
  if (profile.extras.empty()) return {};
  std::set<std::string> used;
  for (const Stage& stage : plan.stages)
    for (const DeviceId id : stage.devices) used.insert(cluster.type_of(id).name);
  std::map<std::string, Seconds> by_type;
  for (const StepExtra& extra : profile.extras)
    if (used.contains(extra.device_type)) by_type[extra.device_type] += extra.time;
  Seconds slowest;
  for (const auto& [type, time] : by_type) slowest = std::max(slowest, time);
  return slowest;
}

}  // namespace plait
