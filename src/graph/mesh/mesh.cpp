#include "graph/mesh/mesh.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "base/error.h"
#include "cost/comm/measured_links.h"

namespace plait::graph {
namespace {

// The devices that differ from device `base` along the axes only.
std::vector<DeviceId> members_of(const std::vector<int>& sizes, AxisSet axes, int base) {
  std::vector<DeviceId> members{static_cast<DeviceId>(base)};
  int stride = 1;
  for (int a = static_cast<int>(sizes.size()) - 1; a >= 0; --a) {
    if ((axes >> a & 1U) != 0) {
      const std::vector<DeviceId> before = members;
      members.clear();
      for (int i = 0; i < sizes[a]; ++i)
        for (const DeviceId id : before)
          members.push_back(static_cast<DeviceId>(index(id) + i * stride));
    }
    stride *= sizes[a];
  }
  std::ranges::sort(members);
  return members;
}

Group slower(const Group& a, const Group& b) {
  Group made = a;
  made.nodes = std::max(a.nodes, b.nodes);
  made.per_node = std::max(a.per_node, b.per_node);
  made.intra = plait::slower(a.intra, b.intra);
  made.inter = a.nodes == 1 ? b.inter : b.nodes == 1 ? a.inter : plait::slower(a.inter, b.inter);
  return made;
}

// The slowest of the groups along the axes, all of which communicate at once.
Group group_along(const Cluster& cluster, const std::vector<int>& sizes, AxisSet axes,
                  double& most_sharing) {
  std::vector<char> seen(cluster.devices.size(), 0);
  Group slowest;
  bool first = true;
  for (int base = 0; base < cluster.device_count(); ++base) {
    if (seen[base] != 0) continue;
    const std::vector<DeviceId> members = members_of(sizes, axes, base);
    for (const DeviceId id : members) seen[index(id)] = 1;
    double sharing = 1;
    for (const NodeShare& share : by_node(cluster, members)) {
      int on_node = 0;
      for (const Device& device : cluster.devices) on_node += device.node == share.node ? 1 : 0;
      sharing = std::max(sharing, static_cast<double>(on_node) / share.devices);
    }
    most_sharing = std::max(most_sharing, sharing);
    const Group group = group_of(cluster, members, sharing);
    slowest = first ? group : slower(slowest, group);
    first = false;
  }
  return slowest;
}

DeviceType slowest_device(const Cluster& cluster) {
  DeviceType made = cluster.type_of(DeviceId(0));
  for (const Device& device : cluster.devices) {
    const DeviceType& type = cluster.device_types[device.type];
    made.memory = std::min(made.memory, type.memory);
    made.memory_bandwidth = std::min(made.memory_bandwidth, type.memory_bandwidth);
    for (int d = 0; d < kDTypes; ++d) made.peak[d] = std::min(made.peak[d], type.peak[d]);
  }
  return made;
}

}  // namespace

std::string_view name_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return "all-reduce";
    case CollectiveKind::all_gather:
      return "all-gather";
    case CollectiveKind::reduce_scatter:
      return "reduce-scatter";
    case CollectiveKind::all_to_all:
      return "all-to-all";
    case CollectiveKind::permute:
      return "collective-permute";
  }
  return "";
}

int Mesh::devices() const { return size_of((1U << axes()) - 1); }

int Mesh::size_of(AxisSet set) const {
  int product = 1;
  for (int a = 0; a < axes(); ++a)
    if ((set >> a & 1U) != 0) product *= sizes[a];
  return product;
}

Mesh make_mesh(const Cluster& cluster, const std::vector<int>& sizes, const std::string& where) {
  double product = 1;
  for (const int size : sizes) product *= size;
  if (product != cluster.device_count())
    throw InputError(where, "a mesh of " + text_of(sizes) + " needs " +
                                std::to_string(static_cast<long long>(product)) +
                                " devices, and the cluster has " +
                                std::to_string(cluster.device_count()));
  Mesh mesh;
  mesh.sizes = sizes;
  mesh.device = slowest_device(cluster);
  mesh.group.resize(std::size_t{1} << sizes.size());
  mesh.sharing.assign(mesh.group.size(), 1);
  for (AxisSet set = 1; set < mesh.group.size(); ++set)
    mesh.group[set] = group_along(cluster, sizes, set, mesh.sharing[set]);
  return mesh;
}

std::vector<int> parse_mesh(const std::string& text, const std::string& where) {
  std::vector<int> sizes;
  int value = 0;
  bool digits = false;
  const auto wrong = [&] {
    throw InputError(where, "'" + text +
                                "' is not a mesh: write one to three sizes, as in 8, 2x4 "
                                "or 2x2x2");
  };
  for (const char c : text + "x") {
    if (c >= '0' && c <= '9') {
      value = value * 10 + (c - '0');
      digits = true;
      if (value > 1'000'000) wrong();
    } else if ((c == 'x' || c == 'X') && digits && value > 0) {
      sizes.push_back(value);
      value = 0;
      digits = false;
    } else {
      wrong();
    }
  }
  if (sizes.size() > kMostAxes) wrong();
  return sizes;
}

std::string text_of(const std::vector<int>& sizes) {
  std::string out;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    out += (i > 0 ? "x" : "") + std::to_string(sizes[i]);
  return out;
}

std::vector<std::vector<int>> all_meshes(int devices, int most) {
  std::vector<std::vector<int>> all;
  std::vector<int> sizes;
  const std::function<void(int)> extend = [&](int left) {
    if (left == 1 && !sizes.empty()) all.push_back(sizes);
    if (static_cast<int>(sizes.size()) == most) return;
    for (int size = 2; size <= left; ++size) {
      if (left % size != 0) continue;
      sizes.push_back(size);
      extend(left / size);
      sizes.pop_back();
    }
  };
  extend(devices);
  if (devices == 1) all.push_back({1});
  std::ranges::stable_sort(all, {}, [](const std::vector<int>& m) { return m.size(); });
  return all;
}

std::string axis_name(int axis) { return std::string(1, static_cast<char>('x' + axis)); }

namespace {

// On the lines between points that were measured, in proportion beyond the last; nothing where
// there are none. A permutation is timed as an exchange.
std::optional<Seconds> measured_time(const Mesh& mesh, CollectiveKind kind, AxisSet axes,
                                     Bytes size) {
  if (kind == CollectiveKind::permute) kind = CollectiveKind::all_to_all;
  const MeasuredTransfer* below = nullptr;
  const MeasuredTransfer* above = nullptr;
  for (const MeasuredTransfer& m : mesh.measured) {
    if (m.kind != kind || m.axes != axes) continue;
    if (m.size <= size && (below == nullptr || m.size > below->size)) below = &m;
    if (m.size > size && (above == nullptr || m.size < above->size)) above = &m;
  }
  if (below == nullptr) return above == nullptr ? std::nullopt : std::optional(above->time);
  if (above == nullptr) return below->time * (size / below->size);
  const double part = (size - below->size) / (above->size - below->size);
  return below->time + (above->time - below->time) * part;
}

}  // namespace

Seconds time_of(const Mesh& mesh, CollectiveKind kind, AxisSet axes, Bytes size) {
  if (!mesh.measured.empty())
    if (const auto time = measured_time(mesh, kind, axes, size)) return *time;
  const Group& group = mesh.group[axes];
  static const Profile kNothing;
  const bool alone = mesh.curves && (group.nodes == 1 || mesh.sharing[axes] == 1);
  const MeasuredLinks links(alone ? *mesh.curves : kNothing, mesh.device.name);
  switch (kind) {
    case CollectiveKind::all_reduce:
      return links.all_reduce(group, size);
    case CollectiveKind::all_gather:
      return links.all_gather(group, size);
    case CollectiveKind::reduce_scatter:
      return links.reduce_scatter(group, size);
    case CollectiveKind::all_to_all:
      return alone ? links.all_to_all(group, size * group.members) : all_to_all(group, size, {});
    case CollectiveKind::permute:
      return send(group.nodes > 1 ? group.inter : group.intra, size);
  }
  return {};
}

Bytes traffic_of(const Mesh& mesh, CollectiveKind kind, AxisSet axes, Bytes size) {
  const double n = mesh.size_of(axes);
  if (kind == CollectiveKind::permute) return size;
  const Bytes one_way = size * ((n - 1) / n);
  return kind == CollectiveKind::all_reduce ? 2 * one_way : one_way;
}

}  // namespace plait::graph
