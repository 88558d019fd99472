#pragma once

#include <string>

namespace plait {

// InputError when no file can be written there; "" is fine. Called before long work, so that a typo
// in the name of the output does not discard a finished result.
void check_output(const std::string& path);

std::string path_in_folder(const std::string& folder, const std::string& name);

}  // namespace plait
