#pragma once

#include <functional>
#include <optional>

#include "cost/measured.h"

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
// (ComputeSample::synchronised). Such a time is a sum, where training overlaps the two:
//   measured = launch + device + collectives
// The analytic model expects all three. Its collectives are believed; what is left over is shared
// between launch and device in proportion to how unsure each is (the mean of two independent normal
// quantities given their sum): a host is within a factor of two of the one that the framework's
// constants were fitted on, a device within a quarter of its own. Launch takes the left-over where
// the device has little to do, the device where it is busy.
//   tp 1, T4:    5.47 ms = 1.9 ms launch + 3.6 ms device, where 2.2 + 3.4 were expected
//   tp 1, V100:  3.92 ms = 3.2 ms launch + 0.7 ms device, where 2.2 + 0.6 were expected
// The device's factor is that of tp 1 where tp 1 was measured. With more devices, what is beyond
// launch and collectives is waiting for one another. Backward launches twice the kernels, but from
// compiled code: as long as forward.
// Nothing when the kind was not measured so on this device type.
std::optional<Adjustment> explain_synchronised(const MeasuredPlace& place,
                                               const AnalyticSides& analytic);

}  // namespace plait
