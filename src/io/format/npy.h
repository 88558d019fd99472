#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plait {

// The numbers of a NumPy .npy file (format versions 1 to 3): one dimension, little-endian float64
// or float32. InputError for anything else, and for values that are not finite.
std::vector<double> parse_npy(const std::string& name, std::string_view bytes);
std::vector<double> read_npy_file(const std::string& path);

}  // namespace plait
