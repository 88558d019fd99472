#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

namespace plait {

// Where compute was measured. Times are of the whole micro-batch on one device of the group.
struct ComputeKey {
  std::string unit;  // LayerKind::name: "decoder", or "decoder.attention.qkv" for one op
  std::string device_type;
  int tensor = 1;
  int micro_batch = 1;  // samples on the replica
  int sequence = 0;     // tokens of a sample; 0 = the model's own
  int split = 0;        // which of the op's split choices, as Span::split
  friend auto operator<=>(const ComputeKey&, const ComputeKey&) = default;
};

// What was measured there; what is absent was not.
struct ComputeSample {
  std::optional<Seconds> forward;
  std::optional<Seconds> backward;  // input and weight gradients
  std::optional<Seconds> both;      // forward and backward together, where only their sum is known
  // The times contain the communication of the tensor group, which is then not added again.
  bool communication_inside = false;
  std::optional<Bytes> saved_activations;  // kept from forward for backward
  std::optional<Bytes> input;              // of that, what repeating it needs
  std::optional<Bytes> workspace;          // needed while backward runs, beside what is kept
  std::optional<Bytes> memory;  // all of it with one micro-batch: states and activations
  std::optional<Seconds> optimizer;
  friend auto operator<=>(const ComputeSample&, const ComputeSample&) = default;
};

// A collective over `nodes` nodes with `devices_per_node` members on each; "send" is from one
// device to one other, in the same node where nodes is 1.
struct CollectiveKey {
  std::string collective;  // "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send"
  std::string device_type;
  int nodes = 1;
  int devices_per_node = 1;
  friend auto operator<=>(const CollectiveKey&, const CollectiveKey&) = default;
};

struct CollectivePoint {
  // The whole tensor: what every member has before an all-reduce, reduce-scatter or all-to-all, and
  // after an all-gather.
  Bytes size;
  Seconds time;
  friend auto operator<=>(const CollectivePoint&, const CollectivePoint&) = default;
};

// Time that every step takes besides what compute and collectives explain.
struct StepExtra {
  std::string name;  // "data loading"
  std::string device_type;
  Seconds time;
  friend auto operator<=>(const StepExtra&, const StepExtra&) = default;
};

// How the numbers came about, for people to read.
struct Provenance {
  std::string source;   // "metis", "aceso", "plait profile"
  std::string command;  // that measured, or that imported
  std::map<std::string, std::string> versions;
  std::vector<std::string> notes;  // what was assumed, one sentence each
  friend auto operator<=>(const Provenance&, const Provenance&) = default;
};

// Measurements only: it never invents a number. Estimating what was not measured is cost/'s
// business.
struct Profile {
  std::map<ComputeKey, ComputeSample> compute;
  std::map<CollectiveKey, std::vector<CollectivePoint>> collectives;  // ascending size
  std::vector<StepExtra> extras;
  Provenance provenance;
  bool empty() const { return compute.empty() && collectives.empty() && extras.empty(); }
  friend bool operator==(const Profile&, const Profile&) = default;
};

}  // namespace plait
