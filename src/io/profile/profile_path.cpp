#include "io/profile/profile_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"

namespace plait {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kMostFiles = 100'000;

std::vector<std::string> files_in(const fs::path& directory, const std::string& prefix,
                                  const std::string& where) {
  std::vector<std::string> names;
  std::error_code fault;
  for (fs::directory_iterator it(directory.empty() ? "." : directory, fault), end;
       !fault && it != end; it.increment(fault)) {
    const std::string name = it->path().filename().string();
    std::error_code kind_fault;
    if (!name.starts_with(prefix) || it->is_directory(kind_fault)) continue;
    names.push_back(name);
    if (names.size() > kMostFiles)
      throw InputError(where, fmt::format("has more than {} files", kMostFiles));
  }
  if (fault) throw InputError(where, "cannot be read: " + fault.message());
  std::ranges::sort(names);
  return names;
}

}  // namespace

ProfilePath find_profile_files(const std::string& path) {
  std::error_code fault;
  if (fs::is_directory(path, fault)) {
    std::string directory = path;
    while (directory.size() > 1 && directory.ends_with('/')) directory.pop_back();
    ProfilePath found{directory, files_in(path, "", path)};
    if (found.names.empty()) throw InputError(path, "is an empty directory");
    return found;
  }
  const fs::path given(path);
  const std::string directory = given.parent_path().string();
  const std::string name = given.filename().string();
  if (fs::exists(path, fault)) return {directory, {name}};
  if (name.empty() || !(directory.empty() || fs::is_directory(directory, fault)))
    throw InputError(path, "there is no such file or directory");
  ProfilePath found{directory, files_in(directory, name, path)};
  if (found.names.empty())
    throw InputError(path, "there is no such file or directory, nor files that start so");
  return found;
}

}  // namespace plait
