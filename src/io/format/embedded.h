#pragma once

#include <string_view>

namespace plait {

// The text of a file of data/catalogue/, data/profiles/ or data/validation/, compiled into the
// program ("devices.json"); empty when there is none of that name.
std::string_view embedded_file(std::string_view name);

}  // namespace plait
