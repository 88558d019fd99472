#pragma once

#include "search/space/shortlist.h"

namespace plait {

// Moves layers of a plan from chunk to chunk, one by one, as long as the step gets shorter, within
// what the target and the pins allow. Plans that are much slower than `wanted` are left alone.
// `work`: relative to the usual.
void move_layers(const SearchContext& context, const Plan& plan, double work, Seconds wanted,
                 Shortlist& better);

}  // namespace plait
