#pragma once

#include <cstdint>
#include <vector>

#include "graph/hlo/program.h"

namespace plait::graph {

// A number for each value that is equal where the same thing is computed from the same arguments:
// also when it is computed again in the backward pass, stored in a stack by one loop and taken from
// it by another, converted, or copied. Names and the order of instructions do not matter.
std::vector<std::uint64_t> number_values(const Program& program);

// Mixes a word into a hash.
std::uint64_t mixed(std::uint64_t hash, std::uint64_t word);
std::uint64_t hash_of(std::string_view text);

// The longest way from an argument to each node, in nodes.
std::vector<int> levels_of(const Program& program);

// The value needs no array to be made from (a scalar everywhere, counting): every device makes the
// part that it wants.
bool is_made_anywhere(const Program& program, int value);

// Ops that change neither which elements there are nor their order, apart from dimensions of one.
bool is_view(const Program& program, const Node& node);

}  // namespace plait::graph
