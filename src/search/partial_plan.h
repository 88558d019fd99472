#pragma once

#include <algorithm>
#include <vector>

#include "search/stage_menu.h"

namespace plait {

// The last stages of a plan, whose earlier stages are still open; planners build pipelines from the
// end, where the number of micro-batches in flight is known. Times without sends.
//
// The closed form of simulator.h, for one stage after the other: with R the round trip through the
// stages after s and k = min(m, stages from s to the end),
//   pipeline >= total + slack,  slack = max over s of (m - k) x_s + refill_s
struct Tail {
  int stages = 0;
  Seconds total;         // sum of forward + backward
  Seconds slack;         // 1f1b
  Seconds most_forward;  // gpipe
  Seconds most_backward;

  void prepend(const StageMenu::Choice& stage, int micro_batches) {
    const double m = micro_batches;
    const int k = std::min(micro_batches, stages + 1);
    Seconds refill = (k - 1.0) * std::max(stage.forward, stage.backward);
    if (micro_batches > k) refill = std::max(refill, total);
    slack = std::max(slack, (m - k) * stage.total() + refill);
    most_forward = std::max(most_forward, stage.forward);
    most_backward = std::max(most_backward, stage.backward);
    total += stage.total();
    ++stages;
  }

  // Least length of the pipeline when the open units add at least `open` to the round trip.
  Seconds bound(Schedule schedule, int micro_batches, Seconds open) const {
    if (schedule == Schedule::gpipe)
      return total + open + (micro_batches - 1.0) * (most_forward + most_backward);
    return total + open + slack;
  }
};

}  // namespace plait
