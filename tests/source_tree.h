#pragma once
// Only source_tree.cpp is compiled with the path, so that a compiler cache serves every clone.
#include <string>

namespace plait {

std::string source_dir();  // where the repository lies, without a slash at the end

}  // namespace plait
