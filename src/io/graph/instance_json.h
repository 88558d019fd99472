#pragma once

#include <string>

#include "graph/solve/instance.h"
#include "graph/solve/solve.h"

namespace plait {

// Reads an instance in the contest's JSON, as it is or packed by gzip:
//   {"problem": {"name": "...",
//                "nodes": {"intervals": [[begin, end], ...], "costs": [[...], ...],
//                          "usages": [[...], ...]},
//                "edges": {"nodes": [[first, second], ...], "costs": [[...], ...]},
//                "usage_limit": N}}
// All numbers are whole and at least 0; a cost of 10^18 or more means "not allowed". Without
// "usage_limit" there is none. InputError names the place of the first fault.
solve::Instance read_instance(const std::string& path);

// {"name", "cost", "lower_bound", "gap", "choices": [one of each node, from 0]}
std::string solution_json(const solve::Instance& instance, const solve::Solution& solution);

}  // namespace plait
