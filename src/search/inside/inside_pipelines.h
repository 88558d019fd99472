#pragma once

#include <functional>
#include <vector>

#include "search/space/search.h"
#include "search/space/shortlist.h"

namespace plait {

// Whether the units of a model are ops, and the target lets each be run in its own way.
bool may_choose_inside(const SearchContext& context);

// Pipelines whose stages have the best inside (stage_insides.h), offered to the list: those of the
// plans in it, and of all divisions of the devices into stages of powers of two, as far as they are
// promising. Stages are cut between layers first, then between ops near the cuts that were found.
void offer_insides(const SearchContext& context, Shortlist& found,
                   const std::function<bool()>& stop);

}  // namespace plait
