#pragma once

#include <array>
#include <compare>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/units.h"

namespace plait {

// A rank: a position in Cluster::devices. A name, not a number: no arithmetic.
enum class DeviceId : int {};
constexpr int index(DeviceId id) { return static_cast<int>(id); }

// alpha-beta link: t(n) = latency + n / bandwidth, per direction.
struct Link {
  BytesPerSecond bandwidth;
  Seconds latency;
  friend auto operator<=>(const Link&, const Link&) = default;
};

// What is left when data must pass both.
Link slower(const Link& a, const Link& b);

// How much of its datasheet a device type reaches: the calibrated constants of the analytic model.
// docs/cost-model.md derives each and says where its values come from. Defaults are the A100's.
struct Efficiency {
  double matmul = 0.736;     // fraction of peak that a large matrix product reaches
  double matmul_inner = 39;  // inner dimension at which half of that is reached
  double wave_tail = 0.777;  // waves of 128 x 128 tiles lost at the end of a product
  double misaligned = 2.27;  // slow-down of a product with a dimension that 8 does not divide
  double fp8 = 1;            // of `matmul`, for fp8 products
  double fp4 = 2;            // rate of fp4 products relative to fp8
  double batched = 0.454;    // fraction of peak in the products of plain attention
  double batched_misaligned = 0.0235;  // the same when 8 does not divide the head size
  double attention = 0.62;             // fraction of peak in flash attention, forward
  double attention_backward = 0.85;    // of that, backward
  double portable_attention = 1;       // flash kernels not written for this architecture, relative
  double early_attention = 0.58;       // of that, the kernels of 2022 and 2023
  double memory = 0.714;               // fraction of memory bandwidth in memory-bound kernels
  double optimizer = 0.90;             // fraction of memory bandwidth in the optimizer step
  Seconds kernel = Seconds(4.05e-6);   // time that a kernel takes however small it is
  double intra = 0.80;                 // fraction of the node's link that a collective reaches
  double inter = 0.80;                 // fraction of the network that a collective reaches
  double spread = 0;                   // by which devices of the type differ, relative
  friend auto operator<=>(const Efficiency&, const Efficiency&) = default;
};

struct DeviceType {
  std::string name;  // "H100", "A100-80GB": the catalogue's spelling
  Bytes memory;
  BytesPerSecond memory_bandwidth;
  std::array<FlopsPerSecond, kDTypes> peak;  // dense, by DType; 0 = not supported
  int multiprocessors = 100;                 // what a wave of tiles fills
  Link intra;        // to a neighbour in the same node (NVLink, or PCIe where there is none)
  int per_node = 8;  // in the usual server
  // Whether the links of a node meet in a switch. Otherwise each goes to one neighbour, so that a
  // group of k in a node of n reaches (k - 1)/(n - 1) of a device's links.
  bool switched = true;
  Efficiency efficiency;
  UsdPerSecond price;  // of one device in the usual instance; 0 = unknown
  // To the memory of the host, and what the host's processors read and write of it for one device,
  // when all devices of a node ask: for optimizer state that is kept there.
  BytesPerSecond host_link = BytesPerSecond(12.5e9);
  BytesPerSecond host_memory = BytesPerSecond(15e9);
  // The library that sums over devices: those of one do not work with those of another.
  std::string collectives = "NCCL";
  // Where the constants come from: "measured", "fitted", "copied from H100"; "" = not said.
  std::string basis;
  friend auto operator<=>(const DeviceType&, const DeviceType&) = default;

  // The rate that products of this type run at: the datasheet's, or that of the nearest type that
  // the device supports (bf16 and fp16 stand in for each other, then fp32).
  FlopsPerSecond peak_of(DType dtype) const;
  bool supports(DType dtype) const { return peak[static_cast<int>(dtype)] > FlopsPerSecond(0); }
};

struct Node {
  std::string name;
  int zone = 0;        // index into Cluster::zones
  Link intra;          // between any two devices of this node, per device and direction
  Link uplink;         // all network adapters of the node together, per direction, shared
  UsdPerSecond price;  // of the whole node; 0 = unknown
  friend auto operator<=>(const Node&, const Node&) = default;
};

struct Device {
  int type = 0;  // index into Cluster::device_types
  int node = 0;  // index into Cluster::nodes
  friend auto operator<=>(const Device&, const Device&) = default;
};

// The link between two zones, both directions alike, shared by all nodes of the zones.
struct ZoneLink {
  int a = 0;
  int b = 0;
  Link link;
  friend auto operator<=>(const ZoneLink&, const ZoneLink&) = default;
};

struct Cluster {
  std::string name;
  std::vector<DeviceType> device_types;
  std::vector<std::string> zones;  // at least one
  std::vector<ZoneLink> zone_links;
  std::vector<Node> nodes;
  std::vector<Device> devices;  // position is the DeviceId; devices of one node are contiguous
  // Of a larger cluster, whose other devices are idle: a plan of it is to be one of the whole, too.
  bool is_part = false;

  int device_count() const { return static_cast<int>(devices.size()); }
  const Device& device(DeviceId id) const { return devices[index(id)]; }
  const DeviceType& type_of(DeviceId id) const { return device_types[device(id).type]; }
  const Node& node_of(DeviceId id) const { return nodes[device(id).node]; }
  UsdPerSecond price() const;  // of all nodes

  friend bool operator==(const Cluster&, const Cluster&) = default;
};

// The link between two devices: the node's own if they share one, the slower of the two uplinks in
// one zone, and never faster than the link between their zones.
Link link_between(const Cluster& cluster, DeviceId a, DeviceId b);

// The link between two nodes (a != b), by the same rule.
Link link_between_nodes(const Cluster& cluster, int a, int b);

}  // namespace plait
