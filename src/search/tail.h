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
};

// The last stages of a plan, whose earlier stages are still open; planners build pipelines from the
// end, where the number of micro-batches in flight is known. Times without sends.
//
// The closed form of simulator.h, one stage after the other: with R the round trip through the
// stages after s and k = min(m, stages from s to the end),
//   pipeline >= total + slack,  slack = max over s of (m - k) x_s + refill_s
struct Tail {
  int stages = 0;
  Seconds total;         // sum of forward + backward
  Seconds slack;         // 1f1b
  Seconds most_forward;  // gpipe
  Seconds most_backward;
  Seconds
      finish;  // by how much the step outlasts the pipeline, if the first stage is there already

  void prepend(const StageTime& stage, int micro_batches) {
    const double m = micro_batches;
    const int k = std::min(micro_batches, stages + 1);
    Seconds refill = (k - 1.0) * std::max(stage.forward, stage.backward);
    if (micro_batches > k) refill = std::max(refill, total);
    slack = std::max(slack, (m - k) * stage.total() + refill);
    most_forward = std::max(most_forward, stage.forward);
    most_backward = std::max(most_backward, stage.backward);
    total += stage.total();
    // The stages after this one are through earlier, by its backward pass.
    finish = std::max(stage.finish, finish - stage.backward);
    ++stages;
  }

  // Least length of the step when no stage is missing.
  Seconds step(Schedule schedule, int micro_batches) const {
    return length(schedule, micro_batches) + std::max(Seconds(0), finish);
  }

  // Least length of the pipeline when the open units add at least `open` to the round trip.
  Seconds length(Schedule schedule, int micro_batches, Seconds open = Seconds(0)) const {
    if (schedule == Schedule::gpipe)
      return total + open + (micro_batches - 1.0) * (most_forward + most_backward);
    return total + open + slack;
  }

  // Whether this suffix is no better than the other in any respect.
  bool no_better_than(const Tail& other) const {
    return total >= other.total && slack >= other.slack && most_forward >= other.most_forward &&
           most_backward >= other.most_backward && finish >= other.finish;
  }
};

}  // namespace plait
