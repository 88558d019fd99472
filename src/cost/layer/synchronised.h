#pragma once

#include <functional>
#include <optional>

#include "cost/layer/measured.h"

namespace plait {

// The two sides of a kind's cost without recompute: how long the device is at work, and how long
// the host needs to launch that work, forward and backward together.
struct LaunchedCost {
  UnitCost device;
  Seconds host;
};
using AnalyticSides = std::function<LaunchedCost(const LayerKind&, const Sharding&)>;

// What changes the analytic cost of a kind into one that agrees with its measurements.
struct Adjustment {
  double device = 1;  // times the time on the device
  double host = 1;    // times the host's
  Seconds wait;       // for the tensor group, beyond its collectives; forward, and backward again
  Origin origin;
};

// Explains forward times that were taken with the device idle before and after
// (ComputeSample::synchronised). Launching then hides behind the device only in part, and less than
// in training, where the host runs ahead of it. We assume that half of the launch time overlaps:
//   (measured - collectives)^2 = launch^2 + device^2
// The analytic model expects all three. Its collectives are believed; what is left over of the
// square is shared between launch and device in proportion to how unsure each is (the mean of two
// independent normal quantities given their sum): a host may be half as fast as the one that the
// framework's constants were fitted on, a device a quarter slower than it should be. Launch takes
// the left-over where the device has little to do, the device where it is busy.
//   GPT-2 block, T4:    5.47 ms from launch 2.2 and device 5.0, where 2.2 and 4.7 were expected
//   GPT-2 block, V100:  3.92 ms from launch 3.8 and device 0.9, where 2.2 and 0.9 were
// The device's factor is that of tp 1 where tp 1 was measured. With more devices, what is beyond
// launch and collectives is waiting for one another. Backward launches twice the kernels, but from
// compiled code: as long as forward.
// Nothing when the kind was not measured so on this device type.
std::optional<Adjustment> explain_synchronised(const MeasuredPlace& place,
                                               const AnalyticSides& analytic);

}  // namespace plait
