#pragma once

#include <array>
#include <vector>

#include "base/units.h"
#include "cost/layer/layer_sums.h"
#include "cost/layer/origin.h"
#include "cost/layer/unit_cost.h"

namespace plait {

// What a layer, or one of its units, costs on one replica for one micro-batch: its ops, the host
// that launches them, its collectives, and what each way of recompute adds and leaves.
struct LayerCost {
  std::array<UnitCost, 3> by_recompute;
  std::array<Bytes, 3> repeated;  // by recompute: what its backward pass needs for a moment
  Bytes input;                    // that recompute keeps to begin here
  Bytes workspace;                // measured, or for a weight that is kept in 4 bits
  UnitTable::Extent extent;
  Origin origin;
  bool is_table = false;  // part of an input or output layer
};

// The cost of every unit of a layer: measured where the problem's profile has the unit or the
// layer, else analytic. They add up to the cost of the layer, which is the same whatever its units
// are.
std::vector<LayerCost> layer_cost(const ReplicaSetting& setting, const LayerShape& layer);

// Divides the cost of a layer among its units. `units` is what each of them does on the device; a
// unit gets a share of each second and byte in proportion to its own, so that time that the device
// waits for the host slows all units of a layer down alike.
std::vector<LayerCost> shares_of(const LayerCost& layer, std::vector<LayerCost> units);

}  // namespace plait
