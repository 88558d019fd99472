#pragma once

#include <functional>
#include <optional>

#include "graph/hlo/program.h"

namespace plait::graph {

// How often the body of a while runs: what XLA wrote in its backend_config, or derived from the
// condition, a comparison of a counter that the body moves by a constant with a constant.
// `condition` is the value of the condition, -1 for none; `resolved` follows values that are the
// same. Nothing where it depends on what is computed.
std::optional<double> trip_count(const Program& program, const Instruction& loop, int condition,
                                 const std::function<int(int)>& resolved);

}  // namespace plait::graph
