#pragma once

#include <compare>
#include <vector>

#include "cluster/cluster.h"

namespace plait {

enum class Schedule { gpipe, one_f_one_b, interleaved, zb_h1, zb_2p, zb_v };
enum class Recompute { none, selective, full };
enum class ZeroStage { off, optimizer, gradients, parameters };

// Half-open range of positions in Model::units.
struct UnitRange {
  int begin = 0;
  int end = 0;
  constexpr int size() const { return end - begin; }
  friend auto operator<=>(const UnitRange&, const UnitRange&) = default;
};

// Consecutive units of a stage that are cut the same way over all devices of the stage.
struct Span {
  UnitRange units;
  int tensor = 1;
  int data = 1;   // tensor * data * Plan::context == devices of the stage
  int split = 0;  // which of an op's split choices; 0 = the usual one
  Recompute recompute = Recompute::none;
  int chunk = 0;  // of the stage; not 0 only where the schedule is interleaved or V-shaped
  friend auto operator<=>(const Span&, const Span&) = default;
};

// One pipeline stage: these units, on these devices. Spans are ascending. A chunk is the spans of
// one `chunk`, which touch; a stage has several chunks, in ascending order, when the schedule is
// interleaved or V-shaped. Chunks of the last stage of a V touch as well: the field tells them
// apart.
// Devices are ordered data-major, then context, tensor-minor: with c = Plan::context and t =
// tensor, device of (d, c', t') is devices[(d * c + c') * t + t'].
struct Stage {
  std::vector<Span> spans;
  std::vector<DeviceId> devices;
  // Samples of each micro-batch that each data-parallel replica takes; empty = equal shares.
  // Only stages whose spans all have the same `data` may have it.
  std::vector<int> shares;
  friend auto operator<=>(const Stage&, const Stage&) = default;
};

// The answer: a value. Plans compare equal field by field, and their order breaks ties in a search.
// Each step processes Job::global_batch samples as `micro_batches` equal micro-batches; of each, a
// replica of a span computes global_batch / micro_batches / data samples (or its share), so stages
// may differ in `data`.
struct Plan {
  Schedule schedule = Schedule::one_f_one_b;
  int micro_batches = 1;  // per step
  int context = 1;        // devices that share one sequence
  int expert = 1;         // devices over which experts are spread; divides data * context
  ZeroStage zero = ZeroStage::off;
  bool sequence_parallel = false;
  double offload = 0;  // fraction of the optimizer state kept in host memory
  std::vector<Stage> stages;
  friend auto operator<=>(const Plan&, const Plan&) = default;

  int stage_count() const { return static_cast<int>(stages.size()); }
};

// Makes one span of those that touch and differ in nothing else.
void join_alike(Stage& stage);

// Number of chunks of a stage: 1, or more when the schedule is interleaved or V-shaped.
int chunk_count(const Stage& stage);

// Which chunk (0-based, over the whole pipeline) comes k-th in execution order is decided by the
// schedule: chunk c of stage s is at c * stages + s, and in the V shape the second chunk runs
// backwards: 2 * stages - 1 - s.
int chunk_position(Schedule schedule, int stages, int stage, int chunk);

}  // namespace plait
