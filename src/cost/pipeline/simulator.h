#pragma once

#include <vector>

#include "base/units.h"
#include "cost/pipeline/schedule.h"

namespace plait {

struct Event {
  int stage = 0;
  Task task;
  Seconds begin;
  Seconds end;
};

struct Trace {
  Seconds makespan;  // from the first task to the last
  // Longest time from a stage's first task to its last. Steps follow each other at this distance
  // when stages need not wait for each other between steps (zero-bubble schedules, whose optimizer
  // step is validated afterwards).
  Seconds longest_stage;
  std::vector<Seconds> busy;         // per stage
  std::vector<Seconds> stage_begin;  // when each stage started its first task
  std::vector<Seconds> stage_end;    // when it finished its last
  std::vector<Event> events;         // by stage, in the order of its task list; only if asked for
};

// Runs the task lists: a task starts when its stage is free and its input has arrived. A send
// does not occupy the stage, but its link, which carries one hand-over at a time in each direction.
// Of very long pipelines (over a million tasks) only the ends are run and the middle, which repeats
// itself, is added; those that are so deep that their ends take too long (over 800 stages,
// or some hundred where orders are found) get what each stage takes at least. Where an order has to
// be found (zb-2p, zb-v), pipelines that are not shorter than the limit may be given up: they are
// infinitely long.
Trace simulate(const Pipeline& pipeline, bool keep_events = false,
               Seconds limit = Seconds(HUGE_VAL));

// What it returns for a pipeline that is given up.
Trace endless(const Pipeline& pipeline);

// Length of the pipeline by formula, for GPipe and 1F1B only.
//   gpipe: sum (f + b + 2 c) + (m - 1) (max f + max b), exact, the links among what f and b are of.
//   1f1b:  sum (f + b + 2 c) + max over stages s of [(m - k) (f_s + b_s) + refill_s], where
//          k = min(m, p - s) micro-batches are in flight and refill_s is the longest of
//          (k - 1) f_s, (k - 1) b_s and, if m > k, the round trip through the stages after s;
//          or of (m - 1) times that a link is busy.
//          Each is the length of a path through the task graph, so it is never more than
//          simulate(); equal for equal stages without send time (docs/cost-model.md#schedules).
Seconds closed_form(const Pipeline& pipeline);

// From the first task of a stage to its last, at least: all of its work. With a split backward pass
// in one chunk the stage also waits, once: its first backward pass follows its first forward by a
// round trip through the stages after it, in which it can only run the k - 1 forwards that its
// memory allows. With k = min(m, chunks in flight):
//   m (f + b + w) + max(0, sum over later stages of (f + b) + 2 sum of their c - (k - 1) f)
// And a micro-batch is in memory from its forward pass until its backward pass is over, k at a
// time:
//   m / k * sum over its chunks of (f + b + w + sum over later chunks of (f + b) + 2 sum of c)
// And a link carries one hand-over at a time. One for each stage.
std::vector<Seconds> least_spans(const Pipeline& pipeline);

}  // namespace plait
