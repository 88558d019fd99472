#pragma once
// Only source_tree.cpp is compiled with the path, so that a compiler cache serves every clone.
#include <string>

namespace plait {

std::string source_dir();  // "/home/me/plait"

}  // namespace plait
