#pragma once

#include <string>

namespace plait {

// 16 hexadecimal digits from the kernel's random numbers, for names that nobody can guess.
std::string random_name();

}  // namespace plait
