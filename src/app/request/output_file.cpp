#include "app/request/output_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"

namespace plait {

void check_output(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code fault;
  if (path == "-")
    throw InputError(path, "stdout is for what is printed; name a file, or /dev/stdout");
  if (fs::is_directory(path, fault)) throw InputError(path, "is a directory, a file is needed");
  const fs::path folder = fs::path(path).parent_path();
  if (!folder.empty() && !fs::is_directory(folder, fault))
    throw InputError(path, fmt::format("there is no directory {}", folder.string()));
  // A device or a pipe is written as it is; a file is made anew beside the old one.
  const bool anew = !fs::exists(path, fault) || fs::is_regular_file(path, fault);
  if (!path.empty() && anew && access(folder.empty() ? "." : folder.c_str(), W_OK) != 0)
    throw InputError(path, fmt::format("cannot be written: {}", std::strerror(errno)));
}

std::string path_in_folder(const std::string& folder, const std::string& name) {
  return (std::filesystem::path(folder) / name).string();
}

}  // namespace plait
