#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "cost/comm/collectives.h"
#include "profile/profile.h"

namespace plait::graph {

inline constexpr int kMostAxes = 3;
using AxisSet = unsigned;  // bit a = axis a

enum class CollectiveKind { all_reduce, all_gather, reduce_scatter, all_to_all, permute };
inline constexpr int kCollectiveKinds = 5;
std::string_view name_of(CollectiveKind kind);

// A collective that was timed on the devices themselves; `size` as time_of takes it.
struct MeasuredTransfer {
  CollectiveKind kind = CollectiveKind::all_reduce;
  AxisSet axes = 0;
  Bytes size;
  Seconds time;
};

// Devices in a grid, in the order of the cluster, the last axis moving fastest. What a collective
// takes along an axis follows from the links between the devices of that axis, with the network of
// a node shared by all groups of the axis that use it at once.
struct Mesh {
  std::vector<int> sizes;
  DeviceType device;         // the slowest, with the least memory
  std::vector<Group> group;  // by AxisSet
  // Groups along the axes that use a node's network at once, by AxisSet.
  std::vector<double> sharing;
  // Where some were timed, times follow the line through them instead of the links.
  std::vector<MeasuredTransfer> measured;
  // Curves of collectives that were measured on the devices' type; nothing without. They are of one
  // group at a time: not taken where groups share the network.
  std::shared_ptr<const Profile> curves;

  int axes() const { return static_cast<int>(sizes.size()); }
  int devices() const;
  int size_of(AxisSet axes) const;
};

// InputError where the sizes do not multiply to the devices; `where` names the flag.
Mesh make_mesh(const Cluster& cluster, const std::vector<int>& sizes, const std::string& where);

// "2x4". InputError for what is not a list of one to three sizes.
std::vector<int> parse_mesh(const std::string& text, const std::string& where);
std::string text_of(const std::vector<int>& sizes);

// All ways to write the devices as one to `most` sizes.
std::vector<std::vector<int>> all_meshes(int devices, int most);

// "x", "y", "z".
std::string axis_name(int axis);

// Of a collective over the axes: `size` is the whole tensor before an all-reduce or reduce-scatter,
// after an all-gather, and what a device has for an all-to-all and for a permutation, in which
// every device sends what it has to another one.
Seconds time_of(const Mesh& mesh, CollectiveKind kind, AxisSet axes, Bytes size);
// What each device sends: 2 (n-1)/n of the tensor for an all-reduce, all of what it has for a
// permutation, (n-1)/n for the others.
Bytes traffic_of(const Mesh& mesh, CollectiveKind kind, AxisSet axes, Bytes size);

}  // namespace plait::graph
