#pragma once

#include <cmath>
#include <functional>
#include <vector>

namespace plait {

// A stage of an interleaved pipeline, as far as a bound needs it. Times in seconds.
struct InterleavedStage {
  double layer = 0;           // forward and backward of one layer for one micro-batch, at least
  double finish = 0;          // of one layer, once a step: gradient sync and optimizer, at least
  double ends = 0;            // forward and backward of what is not a layer
  double finish_of_ends = 0;  // added to the finish of all layers; below zero where they hide it
  double wire = 0;            // of one layer, how long the network of its nodes is busy in a step
  double wire_of_ends = 0;    // the same of all that is not a layer, and of hand-overs
  double send = 0;            // of the hand-over to the next stage
  int most_layers = 0;        // that fit in memory
  // [n]: what n layers take more for a micro-batch because some must be recomputed to fit, at
  // least; empty = nothing.
  std::vector<double> recompute{};
};

struct InterleavedPipeline {
  int layers = 0;
  int others = 0;  // units that are neither layers nor at an end, on any stage
  int chunks = 2;  // of every stage
  int micro_batches = 1;
  double forward_share = 0;  // of `layer`, at least; 0.5 at most
  double wrap = 0;           // hand-over from the last stage back to the first
  double tied = 0;           // what follows the last stage
  std::vector<InterleavedStage> stages;
};

struct InterleavedBound {
  double step = 0;          // `tied` not included
  std::vector<int> layers;  // of the stages with which it is reached; empty when nothing fits
};

// No interleaved step is shorter whose chunks differ by one unit at most within a stage, larger
// ones first (in_chunks() in search/space/schedules.h, even_begins() in chunk_layers.h), however
// many layers each stage has; infinite when the layers do not fit. Stage s begins when the first
// micro-batch has passed the first chunks of the stages before, and is followed by their backward
// passes or by its own finish. With n_s layers, x_s the time of one, v chunks and m micro-batches,
//   step >= m (n_s x_s + ends_s) + sum over j < s of (c_j x_j + 2 send_j)
// where c_j = floor((n_j + o) / v) - o layers are in the first chunk if o other units may be there,
// and the same with the forward part of the sum and finish_s instead of its backward part, and no
// step is shorter than the time for which the network of a stage's nodes is busy. The
// least step for which all layers find a place is found by bisection; whether they do, by dynamic
// programming over the layers placed, for the least sum. `least`: a bound that is known; `enough`:
// a longer step is not of interest.
//
// A micro-batch passes all chunks and all hand-overs, there and back; and on every stage its chunks
// are in memory from their forward pass to the end of their backward pass, k of them at a time
// (chunks_in_flight() in cost/pipeline/schedule.h), so that with d_c the time from chunk c on
//   step >= m / k * sum over the stage's chunks of d_c.
//
// A bound that `stop` cuts short holds, but is lower, and may come without layers.
InterleavedBound interleaved_bound(
    const InterleavedPipeline& pipeline, double least, double enough = HUGE_VAL,
    const std::function<bool()>& stop = [] { return false; });

// The same under any schedule, knowing only what the busiest stage has to do, with the layers by
// stage with which it is least busy: each layer goes where it adds to the least. A stage has at
// least `fewest` layers, the first one none.
InterleavedBound busiest_stage_bound(const InterleavedPipeline& pipeline, int fewest);

}  // namespace plait
