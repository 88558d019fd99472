#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace plait {

inline constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20;

// The whole text of a file, without a byte order mark; InputError when it is missing, unreadable, a
// directory or over 64 MiB. "-" is stdin. A pipe that nobody opens to write within a second is
// empty.
std::string read_text_file(const std::string& path);

// Writes to a temporary name beside `path` and renames, so that a reader never sees half a file. A
// link is kept and its file replaced; what is not a file (/dev/stdout, a pipe) is written as it is.
// InputError also where nobody reads from a pipe.
void write_text_file(const std::string& path, std::string_view text);

}  // namespace plait
