#pragma once

#include <string>
#include <vector>

namespace plait {

// The files that the user means by a path: those of a directory, one file, or, for "DIR/gpt2",
// those of DIR whose name starts with "gpt2". Sorted, directories left out.
struct ProfilePath {
  std::string directory;  // "" = the working directory
  std::vector<std::string> names;
  std::string path(const std::string& name) const {
    return directory.empty() ? name : directory + "/" + name;
  }
};

// InputError when there is no such file or directory, or more than 100,000 files.
ProfilePath find_profile_files(const std::string& path);

}  // namespace plait
