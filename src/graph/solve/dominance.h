#pragma once

#include "graph/solve/network.h"

namespace plait::solve {

// Choice `a` takes no more memory than choice `b` in any row. The loads must be tidy.
bool uses_no_more(const Variable& x, int a, int b);

// Each marks the choices of one variable that may go.
std::vector<char> unsupported_choices(const Network& network, int variable);
// Another choice costs no more whatever the neighbours choose, and takes no more memory.
std::vector<char> dominated_choices(Network& network, int variable);

// Forbids the choices that do not fit even where everything else takes its least.
void drop_what_does_not_fit(Network& network);

// Forbids choices and pairs with which the sum of all least costs reaches `below`.
void drop_costly(Network& network, Amount below);

}  // namespace plait::solve
