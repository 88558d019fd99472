#pragma once

#include <functional>
#include <string>

#include "fuzz/readers.h"

namespace plait::fuzz {

// Draws a number from 0 to most - 1.
using Draw = std::function<std::size_t(std::size_t most)>;

// The bytes with a few changes that leave most of their structure: of JSON and CSV whole values are
// replaced by odd ones, doubled, left out or swapped; of other texts words; of bytes bytes. Never
// longer than `most`.
std::string mutated(std::string bytes, Shape shape, std::size_t most, const Draw& draw);

}  // namespace plait::fuzz
