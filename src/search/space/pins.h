#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "plan/problem.h"
#include "plan/target.h"

namespace plait {

// Plan dimensions that the user pins. An empty optional (or vector) leaves the dimension free.
struct Pins {
  std::optional<int> tensor;
  std::optional<int> pipeline;
  std::optional<int> data;
  std::optional<int> context;
  std::optional<int> expert;
  std::optional<int> micro_batch;    // samples per replica
  std::optional<int> micro_batches;  // per step
  std::optional<Recompute> recompute;
  // Layers of every chunk that are recomputed in full, the first ones; the others are not at all.
  std::optional<int> recompute_layers;
  std::optional<ZeroStage> zero;
  std::optional<Schedule> schedule;
  std::optional<int> chunks;  // per stage, for interleaved
  std::optional<bool> sequence_parallel;
  std::vector<int> stages;  // units per stage, pipeline order
  // Numbers of layers that differ by one at most, stage by stage or, interleaved, chunk by chunk.
  bool even_layers = false;
  std::optional<double> offload;  // fraction of the optimizer state in host memory; free means none
};

// What a pin fixes, and the one number of the job that pins must agree with.
enum class Dimension {
  tensor,
  pipeline,
  data,
  context,
  expert,
  micro_batch,
  micro_batches,
  recompute,
  recompute_layers,
  zero,
  schedule,
  chunks,
  sequence_parallel,
  stages,
  offload,
  global_batch,
};
// The name of the field: "micro_batch".
std::string_view name_of(Dimension dimension);

// Why no plan can have the pinned values. `what` is the rest of a sentence about the dimension; it
// names other dimensions between backquotes, so that a front end can put its own names for them:
//   {tensor, "5 does not divide the 12 heads of decoder.attention.core"}
//   {stages, "has 2 stages, but `pipeline` is 3"}
struct PinViolation {
  Dimension dimension = Dimension::tensor;
  std::string what;
  friend bool operator==(const PinViolation&, const PinViolation&) = default;
};
// "`tensor`: 5 does not divide the 12 heads of decoder.attention.core"
std::string in_words(const PinViolation& violation);

// The rules of pins stand here, and nowhere else. The first function knows the rules that hold for
// every model and cluster, the second has all of them, those of the target too. Nothing is returned
// where a plan may exist.
std::optional<PinViolation> violation_among(const Pins& pins, int global_batch);
std::optional<PinViolation> violation_of(const Problem& problem, const Pins& pins,
                                         const Target& target = {});

}  // namespace plait
