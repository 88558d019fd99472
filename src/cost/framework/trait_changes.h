#pragma once

#include <string_view>
#include <vector>

#include "cost/framework/framework.h"

namespace plait {

// The constants of a framework by name, for `scripts/calibrate`, which fits them: seconds, bytes
// and fractions as FrameworkTraits has them. Switches are not constants.
std::vector<std::string_view> trait_names();

// The constant of that name, or nullptr.
double* trait_named(FrameworkTraits& traits, std::string_view name);

// From now on traits_of() gives `value` for jobs of that framework. Not to be called while an
// engine is at work. False when there is no constant of that name.
bool change_trait(Framework framework, std::string_view name, double value);

// What change_trait() was told of this framework; called by traits_of().
void apply_trait_changes(Framework framework, FrameworkTraits& traits);

}  // namespace plait
