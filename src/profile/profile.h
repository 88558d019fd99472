#pragma once

#include <compare>
#include <map>
#include <string>
#include <vector>

#include "base/units.h"

namespace plait {

// One measured point of compute. Times are for the whole micro-batch on one device of the group.
struct ComputeKey {
  std::string unit;  // LayerKind::name, or "kind.op" for one op
  std::string device_type;
  int tensor = 1;
  int micro_batch = 1;  // samples
  int sequence = 0;     // 0 = the model's own
  friend auto operator<=>(const ComputeKey&, const ComputeKey&) = default;
};

struct ComputeSample {
  Seconds forward;
  Seconds backward;
  Bytes saved_activations;
  Bytes workspace;
  friend auto operator<=>(const ComputeSample&, const ComputeSample&) = default;
};

// A collective over `nodes` nodes with `devices_per_node` members on each.
struct CollectiveKey {
  std::string collective;  // "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send"
  std::string device_type;
  int nodes = 1;
  int devices_per_node = 1;
  friend auto operator<=>(const CollectiveKey&, const CollectiveKey&) = default;
};

struct CollectivePoint {
  Bytes size;  // of the whole message on one device
  Seconds time;
  friend auto operator<=>(const CollectivePoint&, const CollectivePoint&) = default;
};

// Measurements only: it never invents a number. Estimating what was not measured is cost/'s
// business.
struct Profile {
  std::map<ComputeKey, ComputeSample> compute;
  std::map<CollectiveKey, std::vector<CollectivePoint>> collectives;  // ascending size
  bool empty() const { return compute.empty() && collectives.empty(); }
  friend bool operator==(const Profile&, const Profile&) = default;
};

}  // namespace plait
