#pragma once

#include "io/plan/plan_json.h"
#include "plan/target.h"

namespace plait {

// The program that other plans than a saved one must be able to run on: that of its framework where
// it runs the saved plan, else any.
const Target& saved_target(const PlanFile& file);

}  // namespace plait
