#pragma once

#include <memory>

#include "runtime/profiler/profile.h"
#include "runtime/profiler/profile_links.h"

namespace plait::runtime {

// Measures on a device of this machine; InputError when it is not there.
std::unique_ptr<Meter> make_meter(const MeterOptions& options);

// Device, driver and library, without touching the device.
Machine describe_machine(const MeterOptions& options);

// Collectives of groups inside a node and across nodes, and messages between two ranks. A
// collective is called in rounds after a barrier; its time is the median round's, as rank 0 sees
// it.
LinkCurves measure_links(const LinkRequest& request);

}  // namespace plait::runtime
