#pragma once

#include <vector>

#include "search/moves/ground.h"

namespace plait {

// Regular pipelines to start from: on all devices, on those of each type alone and on all but the
// slowest type, cut into equal stages of one tensor degree, with few samples a replica; stages on
// neighbouring devices, or with their replicas apart. Devices that are left over stay idle. Not all
// of them are sound or fit.
std::vector<Draft> regular_layouts(const Ground& ground);

}  // namespace plait
