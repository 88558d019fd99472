#pragma once

#include <array>

#include "base/units.h"
#include "cost/layer/origin.h"
#include "cost/layer/unit_cost.h"
#include "cost/op/op_points.h"
#include "model/model.h"
#include "plan/problem.h"

namespace plait {

// What one layer costs on one replica, for one micro-batch: its ops, the host that launches them,
// its collectives, and what each way of recompute adds and leaves.
struct LayerCost {
  std::array<UnitCost, 3> by_recompute;
  std::array<Bytes, 3> repeated;  // by recompute: what its backward pass needs for a moment
  Bytes input;                    // that recompute keeps to begin here
  Bytes workspace;                // measured
  UnitTable::Extent extent;
  Origin origin;
};

// Measured where the problem's profile has the layer, else analytic. `input`: elements of a sample
// that enter it; `points`: the profile's ops on that device.
LayerCost layer_cost(const Problem& problem, const ReplicaShape& shape, const OpPoints& points,
                     const LayerKind& kind, double input);

}  // namespace plait
