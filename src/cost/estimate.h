#pragma once

#include <vector>

#include "base/units.h"
#include "cost/op/source.h"

namespace plait {

// Every second and every byte of one stage has a name here; totals are functions, never stored.
// Times are of the slowest replica.
struct StageCost {
  // One micro-batch, all chunks of the stage together.
  Seconds forward;          // compute
  Seconds backward;         // compute, without recompute
  Seconds recompute;        // forward work repeated during backward
  Seconds weight_gradient;  // the part of `backward` that zero-bubble schedules may move
  Seconds forward_comm;     // exposed tensor, context and expert communication
  Seconds backward_comm;    // same, backward and recompute
  Seconds send;             // to the next stage; the same again for the gradient coming back
  // Once a step.
  Seconds gradient_sync;  // what it adds to the stage's compute
  Seconds tied_sync;      // tied embeddings
  Seconds optimizer;
  // How long all of the stage's traffic of a step keeps the network of each of its nodes busy.
  Seconds network;

  Bytes weights;
  Bytes gradients;
  Bytes optimizer_state;
  Bytes activations;  // at the schedule's peak number of live micro-batches
  Bytes workspace;    // logits, loss, gathered parameters, communication buffers
  Bytes reserve;      // driver, allocator, fragmentation
  Bytes capacity;     // of the device that has least to spare

  // Negative when the stage does not fit.
  Bytes spare() const { return capacity - reserve - peak_memory(); }

  Source source = Source::analytic;         // of compute: the weakest of the stage's units
  Source memory_source = Source::analytic;  // of activations, in the same way

  Seconds forward_total() const { return forward + forward_comm; }
  Seconds backward_total() const { return backward + recompute + backward_comm; }
  Bytes peak_memory() const {
    return weights + gradients + optimizer_state + activations + workspace;
  }
};

struct Estimate {
  Seconds step;            // one optimizer step, end to end
  Seconds pipeline;        // from the first forward to the last backward
  Seconds after_pipeline;  // gradient sync, tied embeddings, optimizer
  Seconds bubble;          // idle time of the busiest stage within `pipeline`
  std::vector<StageCost> stages;
  bool fits = false;  // every stage within its memory; `step` is meaningful either way

  Bytes peak_memory() const {
    Bytes peak;
    for (const StageCost& stage : stages)
      if (peak < stage.peak_memory()) peak = stage.peak_memory();
    return peak;
  }
};

}  // namespace plait
