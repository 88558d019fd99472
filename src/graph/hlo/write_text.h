#pragma once

#include <functional>
#include <span>
#include <string>

#include "graph/hlo/module.h"

namespace plait::graph {

// HLO text in the short form, which XLA reads again. What was read and not changed is written with
// the same names, types, layouts, attributes and order.
std::string write_hlo(const Module& module);

// The same with `extra` behind the attributes of each instruction (", sharding={...}"), where it
// gives something; a sharding that was there is left out when `replace_shardings`.
using ExtraAttributes = std::function<std::string(int computation, int instruction)>;
std::string write_hlo(const Module& module, const ExtraAttributes& extra, bool replace_shardings);

// The chosen instructions of one computation as a module of its own: what they use from elsewhere
// becomes parameters, what others use of them (or all that nothing inside uses) is returned.
Module part_of(const Module& module, int computation, std::span<const int> instructions);

}  // namespace plait::graph
