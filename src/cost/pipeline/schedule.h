#pragma once

#include <cmath>
#include <vector>

#include "base/units.h"
#include "plan/plan.h"

namespace plait {

// The three things a stage does with a micro-batch. Schedules that split the backward pass run
// input gradients (backward) and weight gradients apart; in the others `backward` is both.
enum class TaskKind { forward, backward, weight_gradient };

struct Task {
  TaskKind kind = TaskKind::forward;
  int chunk = 0;  // of the stage
  int micro_batch = 0;
  friend auto operator<=>(const Task&, const Task&) = default;
};

// Times of one chunk of a stage for one micro-batch.
struct ChunkTime {
  Seconds forward;
  Seconds backward;         // input gradient; all of the backward pass when it is not split
  Seconds weight_gradient;  // 0 when the backward pass is not split
};

// One pipeline: how long each task takes, and how long a hand-over between neighbouring chunks.
struct Pipeline {
  Schedule schedule = Schedule::one_f_one_b;
  int stages = 1;
  int chunks = 1;  // per stage
  int micro_batches = 1;
  std::vector<ChunkTime> time;  // [stage * chunks + chunk]
  // Hand-over from the chunk at position k to the one at k + 1, and of its gradient back;
  // stages * chunks - 1 of them.
  std::vector<Seconds> send;
  // Of that, how long the link is taken: hand-overs of one stage to the same neighbour follow each
  // other at this distance at least. Empty where links are never short.
  std::vector<Seconds> send_busy{};

  const ChunkTime& at(int stage, int chunk) const { return time[stage * chunks + chunk]; }
};

// True when the schedule runs weight gradients as tasks of their own.
bool splits_backward(Schedule schedule);

// The order in which each stage runs its tasks: result[stage]. GPipe, 1F1B, interleaved (Narayanan
// et al., SC'21) and ZB-H1 (Qi et al., "Zero Bubble Pipeline Parallelism", ICLR'24) are fixed;
// ZB-2p and ZB-V are made by filling gaps with weight gradients under the memory limit below, so
// they depend on the times; they are empty when no stage order found is shorter than the limit.
std::vector<std::vector<Task>> task_lists(const Pipeline& pipeline,
                                          Seconds limit = Seconds(HUGE_VAL));

// The most micro-batch chunks whose activations a stage holds at once: forwards started minus
// backward passes (weight gradients included) finished, over its whole task list. With p stages, v
// chunks each, m micro-batches, stage s from 0:
//   gpipe        m
//   1f1b         min(m, p - s)
//   interleaved  min(m v, 2 (p - s - 1) + (v - 1) p + 1)
//   zb-h1        min(m, p)          the limit that the order is made under
//   zb-2p        min(m, 2 p)
//   zb-v         min(2 m, 2 p)      half-size chunks: as much as 1f1b's first stage, on all stages
int chunks_in_flight(Schedule schedule, int stages, int stage, int micro_batches, int chunks);

// The gap filling; called by task_lists().
std::vector<std::vector<Task>> gap_filling_lists(const Pipeline& pipeline, Seconds limit);

}  // namespace plait
