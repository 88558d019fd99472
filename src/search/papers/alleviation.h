#pragma once

#include <optional>
#include <vector>

#include "cost/estimate.h"
#include "search/space/space.h"

namespace plait {

// A pipeline in the form in which bottlenecks are alleviated: stages take the devices of the pools
// in order. What is equal is written equally, so that no pipeline is looked at twice.
struct AlleviatedStage {
  int units = 1;
  int devices = 1;
  int tensor = 1;
  Recompute recompute = Recompute::none;
  friend auto operator<=>(const AlleviatedStage&, const AlleviatedStage&) = default;
};
struct Alleviated {
  int setting = 0;  // index into Space::settings()
  std::vector<AlleviatedStage> stages;
  friend auto operator<=>(const Alleviated&, const Alleviated&) = default;
};

// Where each stage is: nothing when a stage would take devices of two pools, or its tensor groups
// would straddle nodes.
std::optional<std::vector<PlacedStage>> placed(const Space& space, const Alleviated& pipeline);

// Stages of equally many units, the rest in the last. Devices: one each, doubled from the first
// stage on while there are enough; nothing where that does not use all of them.
std::optional<Alleviated> balanced_pipeline(const Space& space, int stages, int setting);

// One change that takes load off a stage: Aceso's primitives.
struct Primitive {
  const char* name;
  // What it does to the stage: less (-1), the same (0) or more (1).
  int time;
  int memory;
  std::vector<Alleviated> (*apply)(const Space& space, const Alleviated& from, int bottleneck,
                                   const Estimate& cost);
};
std::span<const Primitive> primitives();

// What a stage has to do for a micro-batch.
Seconds load_of(const StageCost& stage);

}  // namespace plait
