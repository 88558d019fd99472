#pragma once

#include <span>

#include "cost/estimate.h"
#include "cost/span_frame.h"
#include "plan/plan.h"
#include "plan/problem.h"

namespace plait {

// What it takes, for a micro-batch, that the next op wants its input in another layout than the one
// before leaves its output, on the same devices. The backward pass has the gradients' layouts to
// change, and where a changed op is repeated (full recompute), the forward change once more.
struct Resharding {
  Seconds forward;
  Seconds backward;

  Resharding& operator+=(const Resharding& other) {
    forward += other.forward;
    backward += other.backward;
    return *this;
  }
};

// Between two spans of a stage, of which one begins where the other ends. With equal degrees the
// layouts of the split choices decide (op_cuts.h): parts are gathered, partial sums added up, or
// added up and cut, and parts of another kind exchanged; a device that has all of a tensor takes
// its part for nothing. With other degrees the tensor becomes whole in between: its parts are
// gathered, forward before the change and backward behind it, and where a span is less
// data-parallel than the one before it its devices gather samples; where it is more so, they gather
// gradients on the way back. docs/cost-model.md#split-choices
Resharding resharding(const Problem& problem, const PlanSettings& settings,
                      std::span<const DeviceId> devices, const Span& before, const Span& after);

// Between the units of one span.
Resharding resharding_inside(const Problem& problem, const PlanSettings& settings,
                             std::span<const DeviceId> devices, const Span& span);

}  // namespace plait
