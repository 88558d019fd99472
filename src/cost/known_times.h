#pragma once

#include <optional>
#include <set>
#include <string>

#include "plan/plan.h"
#include "plan/problem.h"

namespace plait {

// InputError when a unit has neither a shape, from which its time could be predicted, nor a
// measured time on a device type of the cluster: there is no time from nothing. Names the unit, the
// device type and the degrees that other device types were measured with.
void refuse_unknown_times(const Problem& problem);
// The same for a plan, whose tensor degrees must be among those that such a unit was measured at on
// the devices that run it.
void refuse_unknown_times(const Problem& problem, const Plan& plan);

// The tensor degrees at which all units without a shape were measured on a device type; nothing
// where every unit has one. Such a measurement has the collectives of a group inside a node.
std::optional<std::set<int>> measured_degrees(const Problem& problem,
                                              const std::string& device_type);

}  // namespace plait
