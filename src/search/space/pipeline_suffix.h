#pragma once

#include <algorithm>

#include "base/units.h"
#include "plan/plan.h"

namespace plait {

// One micro-batch on one stage.
struct StageTime {
  Seconds forward;
  Seconds backward;  // everything that is not forward
  Seconds finish;    // once a step, after the last backward: gradient sync and optimizer
  Seconds total() const { return forward + backward; }
  // The part of total() that is independent of placement and free memory; 0 if unknown.
  Seconds least{};
};

// The schedule that pipelines are searched under, and its number of micro-batches.
struct ScheduleSetting {
  Schedule schedule = Schedule::one_f_one_b;
  int micro_batches = 1;
};

// The last stages of a plan, whose earlier stages are still open; planners build pipelines from the
// end, where the number of micro-batches in flight is known.
//
// A step is at least total + max(slack, ended) long. With R the round trip through the stages after
// s, hand-overs included, and k = min(m, stages from s to the end), slack is
//   1f1b   max over s of (m - k) x_s + refill_s (closed_form in cost/pipeline/simulator.h), of
//          (m - 1) x_s - R: a stage has m x_s to do once the first micro-batch is there, and of
//          (q - 1) (x_s + R) + r max(f, b), m - 1 = (q - 1) k + r: micro-batch i + k waits on s for
//          the backward pass of i, a whole round trip;
//   gpipe  (m - 1) (max f + max b).
// Stage s itself ends no earlier than a path whose slowest stage is s or after it, so that
//   ended = max over s of slack from s on + finish_s - backward and hand-overs before s.
struct PipelineSuffix {
  int stages = 0;
  Seconds total;          // sum of forward + backward and of hand-overs, there and back
  Seconds longest;        // most forward + backward of a stage
  Seconds longest_step;   // most of m times that, and finish
  Seconds least_longest;  // the same, of StageTime::least
  Seconds least_longest_step;
  Seconds slack;
  Seconds ended;
  Seconds most_forward;  // gpipe
  Seconds most_backward;

  // What is the same for all stages that can come next.
  struct SuffixConstants {
    SuffixConstants(const ScheduleSetting& rhythm, int stages)
        : gpipe(rhythm.schedule == Schedule::gpipe),
          m(rhythm.micro_batches),
          k(std::min(rhythm.micro_batches, stages + 1)),
          rounds(static_cast<int>((rhythm.micro_batches - 1) / (stages + 1))),
          rest((rhythm.micro_batches - 1) % (stages + 1)) {}
    bool gpipe;
    double m;
    double k;
    double rounds;
    double rest;
  };

  // `send`: of the hand-over to the stages that are there, one way; none to an empty tail.
  void prepend(const StageTime& stage, Seconds send, const ScheduleSetting& rhythm) {
    prepend(stage, send, SuffixConstants(rhythm, stages));
  }
  void prepend(const StageTime& stage, Seconds send, const SuffixConstants& beat) {
    const double m = beat.m;
    if (stages > 0) total += 2 * send;
    if (beat.gpipe) {
      most_forward = std::max(most_forward, stage.forward);
      most_backward = std::max(most_backward, stage.backward);
      slack = (m - 1) * (most_forward + most_backward);
    } else {
      const double k = beat.k;
      Seconds refill = (k - 1) * std::max(stage.forward, stage.backward);
      if (m > k) refill = std::max(refill, total);
      slack = std::max(slack, (m - k) * stage.total() + refill);
      slack = std::max(slack, (m - 1) * stage.total() - total);
      slack = std::max(slack, beat.rounds * (stage.total() + total) +
                                  beat.rest * std::max(stage.forward, stage.backward));
    }
    ended = std::max(ended - stage.backward - send, slack + stage.finish);
    longest = std::max(longest, stage.total());
    longest_step = std::max(longest_step, m * stage.total() + stage.finish);
    if (stage.least > Seconds(0)) {
      least_longest = std::max(least_longest, stage.least);
      least_longest_step = std::max(least_longest_step, m * stage.least + stage.finish);
    }
    total += stage.total();
    ++stages;
  }

  // Least length of the step when no stage is missing.
  Seconds step() const { return total + std::max(slack, ended); }
  // Least length of the pipeline when the open units add at least `open` to the round trip.
  Seconds length(Seconds open = Seconds(0)) const { return total + open + slack; }

  // Whether this suffix is no better than the other in any respect.
  bool no_better_than(const PipelineSuffix& other) const {
    return total >= other.total && slack >= other.slack && most_forward >= other.most_forward &&
           most_backward >= other.most_backward && ended >= other.ended;
  }
};

}  // namespace plait
