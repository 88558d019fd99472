#pragma once

#include "second_opinion/changes.h"

namespace plait::second_opinion {

// Changes of which devices a plan uses at all; as Change::apply.
bool leave_node(const Problem& problem, Sketch& sketch, Random& random);
bool leave_replica(const Problem& problem, Sketch& sketch, Random& random);
bool use_idle(const Problem& problem, Sketch& sketch, Random& random);

}  // namespace plait::second_opinion
