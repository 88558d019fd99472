#pragma once

#include <string>

namespace plait::runtime {

// A new folder among the temporary files that only this user can look into (mode 0700); gone with
// this object.
class PrivateFolder {
 public:
  PrivateFolder();  // InputError when it cannot be made
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace plait::runtime
