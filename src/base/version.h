#pragma once

#include <string_view>

namespace plait {

// The program's version and the commit it was built from: "0.1.0+3f2a91c". Written by
// cmake/version.cmake.
std::string_view version();

}  // namespace plait
