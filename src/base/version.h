#pragma once

#include <string>
#include <string_view>

namespace plait {

// The program's version and the commit it was built from: "0.1.0+3f2a91c". Written by
// cmake/version.cmake.
std::string_view version();

// The same with the program's name, as files tell who made them: "plait 0.1.0+3f2a91c".
inline std::string program_version() { return "plait " + std::string(version()); }

}  // namespace plait
