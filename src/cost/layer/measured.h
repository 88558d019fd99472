#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>

#include "cost/layer/origin.h"
#include "cost/layer/unit_cost.h"
#include "model/model.h"
#include "profile/profile.h"

namespace plait {

// What the analytic model says of a kind under some sharding, by Recompute.
using UnitCosts = std::array<UnitCost, 3>;
using AnalyticCost = std::function<UnitCosts(const LayerKind&, const Sharding&)>;

// A kind on a replica.
struct MeasuredPlace {
  const Profile& profile;
  const Model& model;
  std::string device_type;
  const LayerKind& kind;
  const LayerKind& usual;  // the same, cut as usual: what is measured but for entries of `split`
  const Sharding& sharding;
  int split = 0;
  double state_bytes = 0;  // that training keeps for each parameter
  int devices = 1;         // of the cluster, which wait for one another in every step
};

struct MeasuredCost {
  UnitCosts costs;
  Origin origin;
  bool saved_all = false;      // costs[].saved were measured and have logits and loss in them
  std::optional<Bytes> input;  // that repeating the kind needs
  Bytes workspace;             // while its backward runs
};

// The costs of a kind on a replica as the profile has them, or nothing when the kind was not
// measured on this device type. `analytic` gives shape, the profile gives size:
//   micro-batch  affine between measured points, and beyond them with the slope of the nearest two,
//                which may be neither negative nor steeper than proportional. With a single point
//                b0: t(b) = t(b0) * analytic(b) / analytic(b0), never t(1) * b; but of ops without
//                a shape, in proportion for larger micro-batches and as it was for smaller ones.
//   tensor, sequence, context, expert, sequence parallel
//                the nearest measured degree, times the analytic ratio
//   backward     when only forward was measured: times the analytic ratio of the two; when only
//                their sum was: divided by it. Weight gradients are a part of it in the same way.
//   recompute    full repeats the measured forward, selective the analytic part of it
//   saved        measured, else from the growth of the measured total memory with the micro-batch,
//                else analytic. What the total has beyond states and activations is UnitCost::held.
// Where the times have the communication of the tensor group inside, none is added, and the ratios
// are of compute and communication together.
// A split choice that was not measured: the usual one's, times the analytic ratio of the two.
// Where the host takes longer to launch the passes of all units than the device to run them, units
// take as many times as long.
// Devices take now longer, now shorter for the same work, and every step waits for the slowest:
// times are 1 + spread * slowest_of(devices) times as long, with the spread of these measurements.
std::optional<MeasuredCost> measured_cost(const MeasuredPlace& place, const AnalyticCost& analytic);

// Whether a unit's ops have no shape: measurements alone say what it takes.
bool is_only_measured(const LayerKind& unit);

// How many standard deviations the slowest of so many equal devices is behind their mean, on
// average, when times are normal and independent. Blom's formula, within 5 %: 0 for one, 1.28
// for 6.
double slowest_of(int devices);

// The kind when samples are `ratio` times as long: work and sizes per token stay, attention is
// quadratic.
LayerKind at_sequence_ratio(LayerKind kind, double ratio);

}  // namespace plait
