#pragma once

#include <string>
#include <string_view>

#include "plan/plan.h"

namespace plait {

// The one way a plan is printed in a line, and back. What is the same for all stages is said once:
//   "pp2 tp4 dp2 mb8 1f1b zero1 sp layers=13,12 devices=0-15"
// A value that differs by stage is a list ("tp4,2"); spans inside a stage are joined by "+"
// ("layers=5+8,12"), chunks of an interleaved stage by "/".
std::string describe(const Plan& plan);

// Throws InputError(where, ...) for a text that describe() could not have written.
Plan parse_description(const std::string& where, std::string_view text);

}  // namespace plait
