#pragma once

#include <vector>

#include "search/space/space.h"

namespace plait {

// Context degrees that are searched beside those of the settings, ascending:
// programs with one layout for all stages cut short sequences too, where a
// replica has fewer samples than that makes parts. None where the degree is
// pinned, or sequences are so long that they are cut anyway.
std::vector<int> short_contexts(const Space& space);

}  // namespace plait
