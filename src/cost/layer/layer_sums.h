#pragma once

#include <array>
#include <optional>
#include <span>

#include "base/units.h"
#include "cost/layer/model_layers.h"
#include "cost/op/kernels.h"
#include "cost/op/op_points.h"
#include "cost/op/replica.h"
#include "model/model.h"
#include "plan/problem.h"

namespace plait {

// What the costs of all layers on one replica have in common. Refers to what it was made of.
struct ReplicaSetting {
  const Problem& problem;
  const ReplicaShape& shape;
  const Kernels& kernels;
  const OpPoints& points;
  const ModelLayers& layers;

  const DeviceType& device() const { return kernels.device(); }
  const FrameworkTraits& traits() const { return kernels.traits(); }
};

// Sums over ops of a layer on the device, before host time and recompute.
struct LayerSums {
  UnitCost unit;
  Seconds host;
  Seconds host_forward;
  Seconds attention;  // forward of the ops that selective recompute repeats
  Seconds last;       // forward of the ops after the last tensor that backward needs
  Bytes selective;    // saved when they are repeated
  Bytes every_other;  // saved when every second product and all else but attention is repeated
  Bytes loss;
  Bytes kept_loss;
  Bytes unpacked;  // the largest weight that is written out for its product
  // Of its products, convolutions and attention: the weakest source; nothing when it has none.
  std::optional<Source> kernels;
};

// `last`: the position among `ops` from which on full recompute may stop (last_position()).
LayerSums sums_of(const ReplicaSetting& setting, std::span<const Op> ops, int last);

// The additions at the end of a layer, and the product before them: backward needs no result of
// theirs.
int last_position(std::span<const Op> ops);

inline LayerSums sums_of(const ReplicaSetting& setting, const LayerKind& layer) {
  return sums_of(setting, layer.ops, last_position(layer.ops));
}

}  // namespace plait
