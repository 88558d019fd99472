#pragma once

#include "plan/problem.h"

namespace plait {

// InputError when a unit has neither a shape, from which its time could be predicted, nor a
// measured time on a device type of the cluster: there is no time from nothing. Names the unit, the
// device type and the degrees that other device types were measured with.
void refuse_unknown_times(const Problem& problem);

}  // namespace plait
