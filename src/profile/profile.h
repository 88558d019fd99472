#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/units.h"
#include "model/model.h"

namespace plait {

// Where compute was measured. Times are of the whole micro-batch on one device of the group.
struct ComputeKey {
  std::string unit;  // LayerKind::name: "decoder", or "decoder.attention.qkv" for one op
  std::string device_type;
  int tensor = 1;
  int micro_batch = 1;  // samples on the replica
  int sequence = 0;     // tokens of a sample; 0 = the model's own
  int split = 0;        // which of the op's split choices, as Span::split
  // fingerprint() of the unit, so that units of one name and different sizes stand side by side; ""
  // = the name alone tells, as in imported tables.
  std::string shape{};
  friend auto operator<=>(const ComputeKey&, const ComputeKey&) = default;
};

// What was measured there; what is absent was not.
struct ComputeSample {
  std::optional<Seconds> forward;
  std::optional<Seconds> backward;  // input and weight gradients
  std::optional<Seconds> both;      // forward and backward together, where only their sum is known
  // What the host takes to launch them. Where that is longer, the device waits for the host.
  std::optional<Seconds> forward_launch{};
  std::optional<Seconds> backward_launch{};
  // The times contain the communication of the tensor group, which is then not added again.
  bool communication_inside = false;
  // Timed alone, the device idle before and after: launching the work is not hidden behind it, as
  // it is in training.
  bool synchronised = false;
  std::optional<Bytes> saved_activations;  // kept from forward for backward
  std::optional<Bytes> input;              // of that, what repeating it needs
  std::optional<Bytes> workspace;          // needed while backward runs, beside what is kept
  std::optional<Bytes> memory;             // all of it with one micro-batch: states and activations
  std::optional<Seconds> optimizer;
  std::optional<Bytes> reserved;  // of the allocator's pool at the fullest moment, states included
  std::optional<double> spread;   // half the 95 % interval of the median, relative; worst of both
  std::vector<std::string> flags{};  // "clock changed", "outliers": what to doubt
  bool out_of_memory = false;        // it did not fit; nothing else is there then
  friend auto operator<=>(const ComputeSample&, const ComputeSample&) = default;
};

// One operator with the sizes that one device computes, whatever model it belongs to. So a profile
// of some shapes serves models that were never measured (cost/op/op_points.h).
//   matmul       [rows x inner] times [inner x columns], `count` of them
//   attention    rows queries, columns keys, heads of `inner`, `count` heads and `kv_count` of keys
//                and values (samples included)
//   convolution  rows positions of an image's result, inner = channels times window^2, columns
//                channels of the result, `count` images
//   norm         rows of `columns` features
//   elementwise  `rows` results
//   embedding    rows of `columns` features out of `inner` entries
//   loss         rows of `columns` classes
//   reduction    rows of `columns` values, summed
struct OpKey {
  OpKind kind = OpKind::matmul;
  Function function = Function::other;
  DType dtype = DType::bf16;
  std::string device_type;
  double rows = 0;
  double inner = 0;
  double columns = 0;
  double count = 1;
  double kv_count = 0;
  bool causal = false;
  int window = 0;
  int stride = 0;
  friend auto operator<=>(const OpKey&, const OpKey&) = default;
};

// Kernel times, without the host's.
struct OpSample {
  std::optional<Seconds> forward;
  std::optional<Seconds> backward;         // input gradients
  std::optional<Seconds> weight_gradient;  // of ops with weights
  std::optional<double> spread;            // as ComputeSample::spread
  std::vector<std::string> flags{};
  bool out_of_memory = false;
  friend auto operator<=>(const OpSample&, const OpSample&) = default;
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
  std::map<OpKey, OpSample> ops{};
  bool empty() const {
    return compute.empty() && collectives.empty() && extras.empty() && ops.empty();
  }
  friend bool operator==(const Profile&, const Profile&) = default;
};

}  // namespace plait
